// SPDX-License-Identifier: Apache-2.0
#include "data/sources/anemoi_row.h"

#include <algorithm>

#include "core/check.h"
#include "data/zarr/convert.h"

namespace aifs::data {

namespace {

const float* floats(const std::byte* bytes) {
  return static_cast<const float*>(static_cast<const void*>(bytes));
}

bool is_float64(const zarr::DataType& type) {
  return type.kind == zarr::Kind::kFloat && type.item_bytes == sizeof(double);
}

}  // namespace

std::vector<ColumnMap> columns_in_part(const zarr::Array& array, const zarr::ChunkPart& part,
                                       std::span<const ColumnMap> columns) {
  const int64_t corner = part.chunk[kVariable] * array.meta().chunk.shape[kVariable];
  const int64_t first = corner + part.in_chunk[kVariable];
  std::vector<ColumnMap> selected;
  for (const ColumnMap& map : columns) {
    if (map.source >= first && map.source < first + part.extent[kVariable])
      selected.push_back({map.source - corner, map.column});
  }
  return selected;
}

AnemoiRow::AnemoiRow(const zarr::Array& array, Request request)
    : array_(array), request_(std::move(request)), strides_(array.meta().chunk.strides()) {
  if (request_.columns.empty() || request_.nodes.size() == 0) return;
  const zarr::Region region{
      {request_.stored_row, request_.columns.front().source, 0, request_.nodes.begin},
      {request_.stored_row + 1, request_.columns.back().source + 1, request_.members,
       request_.nodes.end}};
  array.grid().for_each_part(region, [&](const zarr::ChunkPart& place) { add_part(place); });
}

void AnemoiRow::add_part(const zarr::ChunkPart& place) {
  std::vector<ColumnMap> columns = columns_in_part(array_, place, request_.columns);
  if (columns.empty()) return;
  const size_t number = parts_.size();
  Part& part = parts_.emplace_back(Part{place, std::move(columns)});
  if (strides_[kCell] == 1) {
    part.chunk = array_.open_chunk(place.chunk);
    part.is_absent = part.chunk == nullptr;
    if (part.is_absent) request_.on_absent(place.chunk);
    // A chunk that can only be decoded whole is kept where neighbouring rows are in it, too.
    const bool is_shared = array_.meta().chunk.shape[kTime] > 1;
    if (part.chunk && part.chunk->num_pieces() == 1 && is_shared) part.chunk.reset();
  }
  if (part.chunk) {
    part.chunk->prefetch();
    add_blocks(number);
  } else {
    pieces_.push_back({number});
  }
}

// Items of the chunk that hold the row: `visit` gets each run.
template <class Visit>
void AnemoiRow::for_each_run(const Part& part, Visit&& visit) const {
  const zarr::ChunkPart& place = part.place;
  const int64_t corner =
      place.in_chunk[kTime] * strides_[kTime] + place.in_chunk[kCell] * strides_[kCell];
  for (const ColumnMap& map : part.columns) {
    for (int64_t e = 0; e < place.extent[kMember]; ++e) {
      const int64_t begin = corner + map.source * strides_[kVariable] +
                            (place.in_chunk[kMember] + e) * strides_[kMember];
      visit(Run{begin, begin + place.extent[kCell] * strides_[kCell], map.column,
                place.in_region[kMember] + e});
    }
  }
}

void AnemoiRow::add_blocks(size_t number) {
  const Part& part = parts_[number];
  const size_t count = part.chunk->num_pieces();
  const zarr::ItemRange first = part.chunk->items(0);
  const int64_t block_items = first.end - first.begin;
  std::vector<bool> needed(count, false);
  for_each_run(part, [&](const Run& run) {
    for (int64_t block = run.begin / block_items; block <= (run.end - 1) / block_items; ++block)
      needed[static_cast<size_t>(block)] = true;
  });
  for (size_t block = 0; block < count; ++block) {
    if (needed[block]) pieces_.push_back({number, block});
  }
}

void AnemoiRow::read_piece(size_t piece, FieldSink& sink, ReadScratch& scratch) {
  const Part& part = parts_[pieces_[piece].part];
  if (part.chunk) return put_block(part, pieces_[piece].block, sink, scratch);
  if (part.is_absent) return put_fill(part, sink);
  put_whole(part, sink, scratch);
}

void AnemoiRow::put_block(const Part& part, size_t block, FieldSink& sink,
                          ReadScratch& scratch) const {
  const zarr::ItemRange items = part.chunk->items(block);
  zarr::ItemRange needed{items.end, items.begin};
  for_each_run(part, [&](const Run& run) {
    if (run.begin >= items.end || run.end <= items.begin) return;
    needed.begin = std::min(needed.begin, std::max(run.begin, items.begin));
    needed.end = std::max(needed.end, std::min(run.end, items.end));
  });
  const zarr::BlockView view = part.chunk->decode(block, needed, scratch.chunk);
  const int64_t first_cell = request_.nodes.begin + part.place.in_region[kCell];
  for_each_run(part, [&](const Run& run) {
    const int64_t from = std::max(run.begin, items.begin), to = std::min(run.end, items.end);
    if (from >= to) return;
    put_items(view, from - items.begin,
              {.column = run.column,
               .member = run.member,
               .first_cell = first_cell + from - run.begin,
               .count = to - from},
              sink, scratch);
  });
}

void AnemoiRow::put_items(const zarr::BlockView& view, int64_t first, FieldRun run, FieldSink& sink,
                          ReadScratch& scratch) const {
  const zarr::DataType& type = array_.meta().type;
  const auto at = static_cast<size_t>(first);
  if (type.is_native_float()) {
    if (view.planar) {
      run.planes = view.bytes + at;
      run.plane_bytes = view.plane_bytes;
    } else {
      run.values = floats(view.bytes) + at;
    }
    return sink.put(run);
  }
  const auto width = static_cast<size_t>(type.item_bytes), count = static_cast<size_t>(run.count);
  const std::byte* items = view.bytes + at * width;
  if (view.planar) {  // the encoded bytes are not needed any more
    scratch.chunk.encoded.resize(count * width);
    for (size_t i = 0; i < count; ++i) {
      for (size_t b = 0; b < width; ++b)
        scratch.chunk.encoded.data()[i * width + b] = view.bytes[b * view.plane_bytes + at + i];
    }
    items = scratch.chunk.encoded.data();
  }
  convert(items, 1, run, scratch);
  sink.put(run);
}

void AnemoiRow::convert(const std::byte* items, int64_t stride, FieldRun& run,
                        ReadScratch& scratch) const {
  const zarr::DataType& type = array_.meta().type;
  const auto count = static_cast<size_t>(run.count);
  scratch.floats.resize(count * sizeof(float));
  auto* values = static_cast<float*>(static_cast<void*>(scratch.floats.data()));
  run.values = values;
  run.stride = 1;
  if (!is_float64(type)) return zarr::convert_items(type, items, stride, run.count, values);
  scratch.doubles.resize(count * sizeof(double));
  auto* doubles = static_cast<double*>(static_cast<void*>(scratch.doubles.data()));
  zarr::convert_items(type, items, stride, run.count, doubles);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(doubles[i]);
  run.doubles = doubles;
}

// Chunks that are decoded as a whole, or whose cells do not follow each other.
void AnemoiRow::put_whole(const Part& part, FieldSink& sink, ReadScratch& scratch) const {
  const bool is_shared = array_.meta().chunk.shape[kTime] > 1;
  const zarr::ChunkView view = is_shared ? array_.cached_chunk(part.place.chunk)
                                         : array_.decode_chunk(part.place.chunk, {}, scratch.chunk);
  if (!view.items) {
    request_.on_absent(part.place.chunk);
    return put_fill(part, sink);
  }
  const zarr::DataType& type = array_.meta().type;
  const int64_t count = part.place.extent[kCell];
  for_each_run(part, [&](const Run& run) {
    FieldRun out{.column = run.column,
                 .member = run.member,
                 .first_cell = request_.nodes.begin + part.place.in_region[kCell],
                 .count = count};
    if (type.is_native_float()) {
      out.values = floats(view.items) + run.begin;
      out.stride = strides_[kCell];
    } else {
      convert(view.items + run.begin * type.item_bytes, strides_[kCell], out, scratch);
    }
    sink.put(out);
  });
}

void AnemoiRow::put_fill(const Part& part, FieldSink& sink) const {
  const zarr::DataType& type = array_.meta().type;
  const auto value = array_.meta().fill.as<float>(type);
  const double exact = is_float64(type) ? array_.meta().fill.as<double>(type) : 0.0;
  for_each_run(part, [&](const Run& run) {
    sink.put({.column = run.column,
              .member = run.member,
              .first_cell = request_.nodes.begin + part.place.in_region[kCell],
              .count = part.place.extent[kCell],
              .values = &value,
              .stride = 0,
              .doubles = is_float64(type) ? &exact : nullptr});
  });
}

}  // namespace aifs::data
