// SPDX-License-Identifier: Apache-2.0
#include "data/loader/encoded_rows.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "core/run_on_threads.h"
#include "core/time.h"
#include "data/sources/anemoi_row.h"
#include "data/zarr/blosc_blocks.h"
#include "data/zarr/in_file.h"

namespace aifs::data {

namespace {

constexpr size_t kAlignment = 256, kUnusedBytes = 64;
constexpr size_t kPieceBytes = size_t{4} << 20;  // that a thread reads at once

size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Bytes that are in memory already.
class MemoryFile : public zarr::ValueFile {
 public:
  MemoryFile(const std::byte* memory, size_t size) : memory_(memory), size_(size) {}
  size_t size() const override { return size_; }
  void read(size_t offset, size_t length, std::byte* out) const override {
    if (offset > size_ || length > size_ - offset) throw DataError("it ends too early");
    std::memcpy(out, memory_ + offset, length);
  }

 private:
  const std::byte* memory_;
  size_t size_;
};

StoredType stored_type(const zarr::DataType& type) {
  switch (type.item_bytes) {
    case 2:
      return StoredType::kFloat16;
    case 4:
      return StoredType::kFloat32;
    default:
      return StoredType::kFloat64;
  }
}

void check_layout(const zarr::ArrayMeta& meta) {
  const auto refuse = [&](const std::string& what) {
    throw DataError(concat("'", meta.file, "': ", what, ", which only the CPU decodes"));
  };
  if (meta.type.kind != zarr::Kind::kFloat || meta.type.big_endian)
    refuse(concat("the array has ", meta.type.name(), meta.type.big_endian ? ", big endian" : ""));
  if (!meta.chunk.codecs.is_only("blosc")) refuse("its chunks are not of Blosc alone");
  if (meta.chunk.strides()[kCell] != 1) refuse("the cells of a field do not follow each other");
}

}  // namespace

EncodedRows::EncodedRows(const AnemoiDataset& dataset, const ColumnMaps& maps,
                         std::span<const int64_t> rows)
    : dataset_(dataset), maps_(maps), array_(dataset.data()) {
  check_layout(array_.meta());
  const DatasetInfo& info = dataset.info();
  const std::span<const ColumnMap> columns = dataset.columns();
  for (size_t row = 0; row < rows.size(); ++row) {
    const int64_t stored_row = dataset.stored_row(rows[row]);
    const bool is_missing =
        std::binary_search(info.missing_rows.begin(), info.missing_rows.end(), rows[row]);
    if (stored_row < 0 || is_missing) {
      throw DataError(concat("'", info.name,
                             "': ", format_date(info.dates_s[static_cast<size_t>(rows[row])]),
                             " is a missing date"));
    }
    const zarr::Region region{
        {stored_row, columns.front().source, 0, 0},
        {stored_row + 1, columns.back().source + 1, info.ensemble_size, info.num_nodes()}};
    array_.grid().for_each_part(region,
                                [&](const zarr::ChunkPart& place) { add_part(row, place); });
  }
  encoded_bytes_ += kUnusedBytes;
}

void EncodedRows::add_part(size_t row, const zarr::ChunkPart& place) {
  const std::vector<ColumnMap> selected = columns_in_part(array_, place, dataset_.columns());
  if (selected.empty()) return;
  std::optional<zarr::EncodedChunk> chunk = array_.open_encoded(place.chunk);
  if (!chunk) throw DataError(concat(array_.absent_text(place.chunk), ": the CPU fills it"));
  if (!chunk->file) {
    throw DataError(concat("'", array_.chunk_path(place.chunk),
                           "' is compressed as a whole, which only the CPU decodes"));
  }
  const zarr::ArrayMeta& meta = array_.meta();
  const std::vector<int64_t> strides = meta.chunk.strides();
  Part& part = parts_.emplace_back();
  part.row = row;
  part.first_cell = place.in_region[kCell];
  const int64_t corner = place.in_chunk[kTime] * strides[kTime] +
                         place.in_chunk[kMember] * strides[kMember] + place.in_chunk[kCell];
  for (const ColumnMap& map : selected) {
    const ColumnMaps::Column& column = maps_[map.column];
    part.columns.push_back({.first_item = corner + map.source * strides[kVariable],
                            .column = static_cast<int32_t>(map.column),
                            .is_filled = column.is_filled ? 1 : 0,
                            .fill = column.fill,
                            .mul = column.map.mul,
                            .add = column.map.add});
  }
  std::sort(part.columns.begin(), part.columns.end(),
            [](const StoredColumn& a, const StoredColumn& b) { return a.column < b.column; });
  part.stored.num_items = static_cast<uint32_t>(meta.chunk_bytes() / meta.type.item_bytes);
  part.stored.type = stored_type(meta.type);
  part.stored.member_items = strides[kMember];
  part.stored.num_cells = place.extent[kCell];
  part.stored.num_columns = static_cast<int32_t>(part.columns.size());
  part.stored.num_members = static_cast<int32_t>(place.extent[kMember]);
  part.first_member = place.in_region[kMember];
  part.chunk = std::move(*chunk);
  part.chunk_number = place.chunk;
  part.encoded_begin = aligned(encoded_bytes_);
  part.decoded_begin = aligned(decoded_bytes_);
  encoded_bytes_ = part.encoded_begin + part.chunk.bytes.end - part.chunk.bytes.begin;
  decoded_bytes_ = part.decoded_begin + static_cast<size_t>(meta.chunk_bytes());
}

void EncodedRows::read(std::byte* memory, int64_t threads) const {
  struct Piece {
    const Part* part;
    zarr::ByteRange bytes;  // of the chunk
  };
  std::vector<Piece> pieces;
  for (const Part& part : parts_) {
    const size_t size = part.chunk.bytes.end - part.chunk.bytes.begin;
    for (size_t begin = 0; begin < size; begin += kPieceBytes)
      pieces.push_back({&part, {begin, std::min(begin + kPieceBytes, size)}});
  }
  run_on_threads(static_cast<int64_t>(pieces.size()), threads, [&](int64_t i) {
    const auto& [part, bytes] = pieces[static_cast<size_t>(i)];
    part->chunk.file->read(part->chunk.bytes.begin + bytes.begin, bytes.end - bytes.begin,
                           memory + part->encoded_begin + bytes.begin);
  });
}

std::vector<zarr::BloscStream> EncodedRows::parse(const std::byte* memory) {
  const auto chunk_bytes = static_cast<size_t>(array_.meta().chunk_bytes());
  const auto item_bytes = static_cast<size_t>(array_.meta().type.item_bytes);
  std::vector<zarr::BloscStream> all;
  for (Part& part : parts_) {
    zarr::in_file(array_.chunk_path(part.chunk_number), [&] {
      const MemoryFile file(memory + part.encoded_begin,
                            part.chunk.bytes.end - part.chunk.bytes.begin);
      const auto blocks = zarr::BloscBlocks::open(file, 0, file.size(), chunk_bytes, item_bytes);
      if (!blocks || !blocks->has_lz4_streams())
        throw DataError("its Blosc buffer is not of LZ4 streams, which only the CPU decodes");
      part.stored.block_items = static_cast<uint32_t>(blocks->block_bytes() / item_bytes);
      part.stored.is_shuffled = blocks->is_shuffled();
      for (zarr::BloscStream stream : blocks->streams(file)) {
        stream.from += part.encoded_begin;
        stream.to += part.decoded_begin;
        all.push_back(stream);
      }
    });
  }
  return all;
}

}  // namespace aifs::data
