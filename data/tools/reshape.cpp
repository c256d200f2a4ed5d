// SPDX-License-Identifier: Apache-2.0
#include "data/tools/reshape.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>

#include "core/check.h"
#include "core/file_io.h"
#include "core/run_on_threads.h"
#include "data/sources/anemoi_metadata.h"
#include "data/tools/copy_journal.h"
#include "data/tools/store_summary.h"
#include "data/zarr/array.h"
#include "data/zarr/array_writer.h"
#include "data/zarr/codec_crc32c.h"
#include "data/zarr/raw_items.h"

namespace aifs::data {

namespace {

using zarr::Json;
using StorePtr = std::shared_ptr<const zarr::Store>;

constexpr const char* kCopy = "_copy";  // Anemoi's name for it
constexpr int64_t kMostBlockBytes = int64_t{2} << 30;

int64_t round_up(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

// ----------------------------------------------------------------------------------- settings ---

// How an array is stored, for a copy in another format.
zarr::ArraySettings settings_of(const zarr::Store& store, const zarr::Array& array,
                                const std::string& name, int format) {
  const zarr::ArrayMeta& meta = array.meta();
  const StoredMetadata stored = stored_metadata(store, name);
  zarr::ArraySettings settings{.format = format,
                               .shape = meta.shape,
                               .chunks = meta.chunk.shape,
                               .type = meta.type,
                               .fill = meta.fill,
                               .attributes = stored.attributes};
  settings.compression =
      zarr::compression_of(stored.json, stored.format).value_or(zarr::Compression{});
  if (format == 3 && stored.format == 3)
    settings.dimension_names = stored.json.value("dimension_names", Json());
  return settings;
}

// Chunks beyond the array are of no use, and some programs refuse them.
void clip(zarr::ArraySettings& settings) {
  for (size_t axis = 0; axis < settings.chunks.size(); ++axis)
    settings.chunks[axis] =
        std::min(settings.chunks[axis], std::max<int64_t>(1, settings.shape[axis]));
}

zarr::ArraySettings field_settings(const zarr::Store& store, const zarr::Array& array,
                                   int stored_format, const ReshapeOptions& options) {
  zarr::ArraySettings s = settings_of(store, array, "data", options.format.value_or(stored_format));
  if (options.compression) s.compression = *options.compression;
  const int64_t num_dates = s.shape[0], num_cells = s.shape[3];
  if (options.cells > 0 && options.cell_chunks > 0)
    throw ConfigError("", "--cells and --cell-chunks both say how large chunks are",
                      "leave one of them out");
  if (options.dates > num_dates)
    throw ConfigError("--dates", concat("the store has ", num_dates, " dates"));
  for (const int64_t count : {options.cells, options.cell_chunks, options.shard_cells}) {
    if (count > num_cells)
      throw ConfigError("", concat(count, " are more than the cells, ", num_cells));
  }
  if (options.dates > 0) s.chunks[0] = options.dates;
  if (options.cells > 0) s.chunks[3] = options.cells;
  if (options.cell_chunks > 0)
    s.chunks[3] = (num_cells + options.cell_chunks - 1) / options.cell_chunks;
  clip(s);
  if (options.shard_dates > 0 || options.shard_cells > 0) {
    s.shards = s.chunks;
    for (const size_t axis : {size_t{1}, size_t{2}})
      s.shards[axis] = round_up(s.shape[axis], s.chunks[axis]);
    if (options.shard_dates > 0) s.shards[0] = options.shard_dates;
    s.shards[3] = options.shard_cells > 0 ? options.shard_cells : round_up(num_cells, s.chunks[3]);
  } else if (!options.format || *options.format == stored_format) {
    const bool same = options.dates == 0 && options.cells == 0 && options.cell_chunks == 0;
    if (array.meta().sharding && same) s.shards = array.meta().sharding->shape;
  }
  return s;
}

// Attributes of the group that describe how the fields are stored.
Json adapted(Json attributes, const zarr::ArraySettings& fields) {
  if (attributes.contains("chunks")) attributes["chunks"] = fields.chunks;
  return attributes;
}

// -------------------------------------------------------------------------------------- fields ---

// Files that are written from one block of items in memory.
struct Block {
  zarr::Region region;
  std::vector<std::vector<int64_t>> files;
};

struct FieldSource {
  const zarr::Array& array;
  std::vector<int64_t> missing_rows;  // of the array, whose dates are declared missing
};

class FieldCopy {
 public:
  FieldCopy(const FieldSource& source, const zarr::ArrayWriter& to, const StorePtr& target,
            CopyJournal& journal, int64_t threads, ProgressSink* progress)
      : from_(source.array),
        missing_rows_(source.missing_rows),
        to_(to),
        target_(target),
        journal_(journal),
        wanted_threads_(threads),
        progress_(progress) {}

  ReshapeResult run() {
    make_blocks();
    write("copy", {});
    to_.write_metadata();
    std::set<std::string> wrong = verify("compare", {});
    if (!wrong.empty()) {
      result_.rewritten = static_cast<int64_t>(wrong.size());
      journal_.forget(wrong);
      write("copy again", wrong);
      wrong = verify("compare again", wrong);
    }
    if (!wrong.empty())
      throw DataError(concat("'", target_->path_of(*wrong.begin()), "' and ", wrong.size() - 1,
                             " more files do not hold what was written to them"),
                      "is the disk in order?");
    result_.files = num_files_;
    return result_;
  }

 private:
  int64_t item_bytes() const { return from_.meta().type.item_bytes; }
  int64_t threads() const { return threads_for(wanted_threads_, 3 * block_bytes_); }

  // Whole dates where these fit into memory, so that a chunk of the source is decoded once.
  void make_blocks() {
    const std::vector<int64_t>& shape = from_.meta().shape;
    const std::vector<int64_t> counts = to_.num_files();
    const int64_t step = to_.files().chunk_shape()[0];
    const int64_t rows = round_up(from_.meta().chunk.shape[0], step);
    const int64_t row_bytes = shape[1] * shape[2] * shape[3] * item_bytes();
    const bool is_small = std::min(rows, shape[0]) * row_bytes <= kMostBlockBytes;
    num_files_ = std::accumulate(counts.begin(), counts.end(), int64_t{1}, std::multiplies<>());
    for (int64_t number = 0; number < num_files_; ++number) {
      std::vector<int64_t> file(counts.size());
      int64_t rest = number;
      for (size_t axis = counts.size(); axis-- > 0; rest /= counts[axis])
        file[axis] = rest % counts[axis];
      zarr::Region region = to_.region_of(file);
      const int64_t group = is_small ? file[0] * step / rows : number;
      if (blocks_.empty() || group != last_group_) blocks_.push_back({});
      last_group_ = group;
      Block& block = blocks_.back();
      if (block.files.empty() && is_small) {
        block.region = zarr::Region::whole(shape);
        block.region.begin[0] = group * rows;
        block.region.end[0] = std::min((group + 1) * rows, shape[0]);
      } else if (block.files.empty()) {
        block.region = std::move(region);
      }
      block.files.push_back(std::move(file));
    }
    for (const Block& block : blocks_)
      block_bytes_ = std::max(block_bytes_, block.region.num_items() * item_bytes());
  }

  // The items of a file's region, from a block.
  void extract(const Block& block, std::span<const std::byte> items, const zarr::Region& region,
               zarr::Buffer& out) const {
    std::vector<int64_t> extent(4), first(4), shape(4);
    for (size_t axis = 0; axis < 4; ++axis) {
      extent[axis] = region.end[axis] - region.begin[axis];
      first[axis] = region.begin[axis] - block.region.begin[axis];
      shape[axis] = block.region.end[axis] - block.region.begin[axis];
    }
    out.resize(static_cast<size_t>(region.num_items() * item_bytes()));
    zarr::copy_block(items.data(), {shape, first}, out.data(), {extent, {0, 0, 0, 0}}, extent,
                     item_bytes());
  }

  // Writes what is not there yet. `only`: these files; empty: all.
  void write(const std::string& what, const std::set<std::string>& only) {
    if (progress_) progress_->start(what, num_files_, "files");
    run_on_threads(static_cast<int64_t>(blocks_.size()), threads(), [&](int64_t number) {
      const Block& block = blocks_[static_cast<size_t>(number)];
      std::vector<const std::vector<int64_t>*> wanted;
      for (const std::vector<int64_t>& file : block.files) {
        const std::string key = to_.key(file);
        const bool is_left_out = !only.empty() && !only.contains(key);
        if (!is_left_out && !journal_.is_done(key))
          wanted.push_back(&file);
        else if (only.empty())
          ++reused_;
        if (progress_ && (wanted.empty() || wanted.back() != &file)) progress_->add(1, 0);
      }
      if (!wanted.empty()) write_block(block, wanted);
    });
    if (progress_) progress_->finish();
    if (only.empty()) result_.reused = reused_;
    result_.bytes = bytes_;
  }

  // Missing dates of which nothing but the fill value is stored, because they share chunks with
  // others: as absent as if they had chunks of their own.
  void add_missing_dates(const Block& block, std::span<const std::byte> items,
                         std::vector<zarr::Region>& absent) const {
    const std::vector<std::byte> fill = zarr::fill_item(from_.meta().type, from_.meta().fill);
    for (const int64_t row : missing_rows_) {
      if (row < block.region.begin[0] || row >= block.region.end[0]) continue;
      zarr::Region region = block.region;
      region.begin[0] = row;
      region.end[0] = row + 1;
      const bool is_touched = std::ranges::any_of(absent, [&](const zarr::Region& other) {
        return other.begin[0] <= row && row < other.end[0];
      });
      const size_t bytes = static_cast<size_t>(region.num_items() * item_bytes());
      const std::byte* at = items.data() + static_cast<size_t>(row - block.region.begin[0]) * bytes;
      bool is_fill = !is_touched;
      for (size_t i = 0; is_fill && i < bytes; i += fill.size())
        is_fill = std::equal(fill.begin(), fill.end(), at + i);
      if (is_fill) absent.push_back(std::move(region));
    }
  }

  void write_block(const Block& block, const std::vector<const std::vector<int64_t>*>& files) {
    thread_local zarr::ChunkScratch reading;
    thread_local zarr::WriteScratch writing;
    thread_local zarr::Buffer items, part;
    items.resize(static_cast<size_t>(block.region.num_items() * item_bytes()));
    std::vector<zarr::Region> absent;
    zarr::read_raw(from_, block.region, {items.data(), items.size()}, absent, reading);
    add_missing_dates(block, items.bytes(), absent);
    const zarr::ItemBlock source{block.region, items.bytes(), absent};
    for (const std::vector<int64_t>* file : files) {
      const zarr::Region region = to_.region_of(*file);
      extract(block, items.bytes(), region, part);
      bytes_ += to_.write(*file, source, writing);
      journal_.add(to_.key(*file), zarr::crc32c(part.bytes()));
      if (progress_) progress_->add(1, static_cast<int64_t>(part.size()));
    }
  }

  // The keys of files whose values are not what the journal says.
  std::set<std::string> verify(const std::string& what, const std::set<std::string>& only) {
    const zarr::Array written(target_, "data");
    std::set<std::string> wrong;
    std::mutex mutex;
    if (progress_) progress_->start(what, num_files_, "files");
    run_on_threads(static_cast<int64_t>(blocks_.size()), threads(), [&](int64_t number) {
      thread_local zarr::ChunkScratch reading;
      thread_local zarr::Buffer items;
      for (const std::vector<int64_t>& file : blocks_[static_cast<size_t>(number)].files) {
        const std::string key = to_.key(file);
        if (!only.empty() && !only.contains(key)) continue;
        const zarr::Region region = to_.region_of(file);
        items.resize(static_cast<size_t>(region.num_items() * item_bytes()));
        bool is_right = false;
        try {
          std::vector<zarr::Region> absent;
          zarr::read_raw(written, region, {items.data(), items.size()}, absent, reading);
          is_right = journal_.checksum(key) == zarr::crc32c(items.bytes());
        } catch (const DataError&) {  // damaged, thus to be written again
        }
        if (!is_right) {
          const std::lock_guard lock(mutex);
          wrong.insert(key);
        }
        if (progress_) progress_->add(1, static_cast<int64_t>(items.size()));
      }
    });
    if (progress_) progress_->finish();
    return wrong;
  }

  const zarr::Array& from_;
  const std::vector<int64_t> missing_rows_;
  const zarr::ArrayWriter& to_;
  const StorePtr& target_;
  CopyJournal& journal_;
  int64_t wanted_threads_;
  ProgressSink* progress_;
  std::vector<Block> blocks_;
  int64_t num_files_ = 0, block_bytes_ = 0, last_group_ = -1;
  std::atomic<int64_t> bytes_ = 0, reused_ = 0;
  ReshapeResult result_;
};

// --------------------------------------------------------------------------------------- rest ---

// An array other than the fields, as it is.
void copy_array(const StorePtr& store, const std::string& name, const fs::path& to, int format,
                const fs::path& staging) {
  const zarr::Array array(store, name);
  zarr::ArraySettings settings = settings_of(*store, array, name, format);
  clip(settings);
  const zarr::ArrayWriter writer(to, name, settings, staging);
  zarr::ItemBlock block{zarr::Region::whole(settings.shape), {}, {}};
  zarr::Buffer items;
  items.resize(static_cast<size_t>(block.region.num_items() * settings.type.item_bytes));
  zarr::ChunkScratch reading;
  zarr::read_raw(array, block.region, {items.data(), items.size()}, block.absent, reading);
  block.items = items.bytes();
  zarr::WriteScratch writing;
  zarr::ChunkGrid(settings.shape, settings.chunks)
      .for_each_part(block.region, [&](const zarr::ChunkPart& part) {
        writer.write(part.chunk, block, writing);
      });
  writer.write_metadata();
}

// One file with the metadata of all arrays, as consolidate_metadata() of zarr-python makes it.
void consolidate(const fs::path& to, const std::vector<std::string>& names, int format,
                 const Json& attributes, const fs::path& staging) {
  const zarr::DirectoryStore store(to.string());
  Json all = Json::object();
  if (format == 2) {
    for (const auto& [key, json] : zarr::group_metadata(2, attributes))
      all[key] = json;
    for (const std::string& name : names) {
      for (const char* file : {"/.zarray", "/.zattrs"}) {
        if (const auto json = zarr::read_json(store, name + file)) all[name + file] = *json;
      }
    }
    zarr::write_staged_json(staging, to / ".zmetadata",
                            Json{{"metadata", all}, {"zarr_consolidated_format", 1}});
    return;
  }
  for (const std::string& name : names)
    all[name] = zarr::read_json(store, name + "/zarr.json").value();
  Json group = zarr::group_metadata(3, attributes).front().second;
  group["consolidated_metadata"] = {
      {"kind", "inline"}, {"must_understand", false}, {"metadata", all}};
  zarr::write_staged_json(staging, to / "zarr.json", group);
}

// Returns what a copy is of, so that another one is not taken for its beginning.
Json request_json(const StorePtr& store, const zarr::Array& data,
                  const zarr::ArraySettings& fields) {
  return {{"from", absolute_path(store->name()).string()},
          {"from_chunks", data.meta().chunk.shape},
          {"data", zarr::array_metadata(fields)}};
}

}  // namespace

ReshapeResult reshape_store(const StorePtr& store, const std::string& to,
                            const ReshapeOptions& options, ProgressSink* progress) {
  const zarr::Group group = open_anemoi_group(*store);
  const zarr::Array data(store, "data");
  const AnemoiMetadata metadata = read_anemoi_metadata(store, group, data, false, false);
  FieldSource source{data, {}};
  for (const int64_t row : metadata.info.missing_rows)
    source.missing_rows.push_back(metadata.stored_rows[static_cast<size_t>(row)]);
  const zarr::ArraySettings fields = field_settings(*store, data, group.format, options);
  const int format = fields.format;
  const fs::path folder = to, copy = folder / kCopy;
  const fs::path staging = copy / "staging";
  const zarr::ArrayWriter writer(folder, "data", fields, staging);  // refuses what cannot be
  CopyJournal journal(folder, copy, request_json(store, data, fields));
  make_directories(staging);
  // Marks the folder as unfinished, in the way of its format.
  for (const auto& [key, json] : zarr::group_metadata(format, Json::object()))
    zarr::write_staged_json(staging, copy / key, json);
  std::vector<std::string> names = array_names(*store);
  for (const std::string& name : names) {
    if (name != "data") copy_array(store, name, folder, format, staging);
  }
  const StorePtr written = std::make_shared<const zarr::DirectoryStore>(to);
  const ReshapeResult result =
      FieldCopy(source, writer, written, journal, options.threads, progress).run();
  const Json attributes = adapted(group.attributes, fields);
  for (const auto& [key, json] : zarr::group_metadata(format, attributes))
    zarr::write_staged_json(staging, folder / key, json);
  if (options.consolidated) consolidate(folder, names, format, attributes, staging);
  zarr::sync_store(folder);
  journal.close();
  return result;
}

}  // namespace aifs::data
