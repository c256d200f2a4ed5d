// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/array_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/check.h"
#include "core/product.h"
#include "data/zarr/array_meta.h"
#include "data/zarr/codec_crc32c.h"
#include "data/zarr/raw_items.h"

namespace aifs::zarr {

namespace {

constexpr int64_t kMostBytes = INT32_MAX - 16;  // of a chunk, as Blosc has it

char numpy_letter(Kind kind) {
  switch (kind) {
    case Kind::kBool:
      return 'b';
    case Kind::kInteger:
      return 'i';
    case Kind::kUnsigned:
      return 'u';
    case Kind::kFloat:
      return 'f';
    case Kind::kDate:
      return 'M';
    case Kind::kDuration:
      return 'm';
  }
  return '?';
}

bool is_time(const DataType& type) {
  return type.kind == Kind::kDate || type.kind == Kind::kDuration;
}

// The largest unit of which a count is a whole number, and that number: {"h", 6}.
std::pair<std::string, int64_t> name_of(const TimeUnit& unit) {
  constexpr std::array<std::pair<const char*, TimeUnit>, 9> kUnits{{{"D", {86400, 1}},
                                                                    {"h", {3600, 1}},
                                                                    {"m", {60, 1}},
                                                                    {"s", {1, 1}},
                                                                    {"ms", {1, 1000}},
                                                                    {"us", {1, 1000000}},
                                                                    {"ns", {1, 1000000000}},
                                                                    {"ps", {1, 1000000000000}},
                                                                    {"fs", {1, 1000000000000000}}}};
  for (const auto& [name, known] : kUnits) {
    const __int128 whole = static_cast<__int128>(unit.seconds) * known.parts;
    const __int128 part = static_cast<__int128>(unit.parts) * known.seconds;
    if (whole % part == 0) return {name, static_cast<int64_t>(whole / part)};
  }
  throw Error(concat("a time unit of ", unit.seconds, "/", unit.parts, " seconds has no name"));
}

std::string numpy_type(const DataType& type) {
  std::string text =
      concat(type.item_bytes == 1 ? '|' : '<', numpy_letter(type.kind), type.item_bytes);
  if (!is_time(type)) return text;
  const auto [unit, count] = name_of(type.unit);
  return concat(text, "[", count == 1 ? "" : std::to_string(count), unit, "]");
}

Json type_v3(const DataType& type) {
  if (!is_time(type)) return type.name();
  const auto [unit, count] = name_of(type.unit);
  return {{"name", concat("numpy.", type.name())},
          {"configuration", {{"unit", unit}, {"scale_factor", count}}}};
}

Json fill_json(const DataType& type, const FillValue& fill, int format) {
  if (!fill.defined && format == 2) return nullptr;
  if (type.kind == Kind::kBool) return fill.integer != 0;
  if (type.kind != Kind::kFloat) return fill.integer;
  if (std::isnan(fill.real) || !fill.defined) return "NaN";
  if (std::isinf(fill.real)) return fill.real > 0 ? "Infinity" : "-Infinity";
  return fill.real;
}

Json metadata_v2(const ArraySettings& s) {
  return {{"chunks", s.chunks},
          {"compressor", compressor_v2(s.compression)},
          {"dtype", numpy_type(s.type)},
          {"fill_value", fill_json(s.type, s.fill, 2)},
          {"filters", nullptr},
          {"order", "C"},
          {"shape", s.shape},
          {"zarr_format", 2}};
}

Json metadata_v3(const ArraySettings& s) {
  Json codecs = codecs_v3(s.compression, s.type.item_bytes);
  if (!s.shards.empty()) {
    Json index = codecs_v3({Compression::Kind::kNone, "", 0, 0}, sizeof(uint64_t));
    index.push_back({{"name", "crc32c"}});
    codecs = Json::array({{{"name", "sharding_indexed"},
                           {"configuration",
                            {{"chunk_shape", s.chunks},
                             {"codecs", codecs},
                             {"index_codecs", index},
                             {"index_location", "end"}}}}});
  }
  Json json{{"shape", s.shape},
            {"data_type", type_v3(s.type)},
            {"chunk_grid",
             {{"name", "regular"},
              {"configuration", {{"chunk_shape", s.shards.empty() ? s.chunks : s.shards}}}}},
            {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
            {"fill_value", fill_json(s.type, s.fill, 3)},
            {"codecs", codecs},
            {"attributes", s.attributes}};
  if (!s.dimension_names.is_null()) json["dimension_names"] = s.dimension_names;
  json["zarr_format"] = 3;
  json["node_type"] = "array";
  json["storage_transformers"] = Json::array();
  return json;
}

void check_size(const char* what, const std::vector<int64_t>& lengths, int64_t item_bytes) {
  double bytes = static_cast<double>(item_bytes);
  for (const int64_t length : lengths) {
    AIFS_CHECK(length >= 1, what, " of length ", length);
    bytes *= static_cast<double>(length);
  }
  if (bytes <= static_cast<double>(kMostBytes)) return;
  throw ConfigError("",
                    concat("a ", what, " of ", Json(lengths).dump(), " items has ", bytes,
                           " bytes, at most ", kMostBytes, " can be"),
                    "make it smaller along one axis");
}

void write_all(int fd, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      throw Error(concat("cannot write '", path.string(), "': ", system_error_text()));
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Calls visit(index) for all indices below `counts`, the last axis fastest.
template <class Visit>
void for_each_index(const std::vector<int64_t>& counts, Visit&& visit) {
  std::vector<int64_t> index(counts.size(), 0);
  for (;;) {
    visit(index);
    size_t axis = counts.size();
    while (axis > 0 && ++index[axis - 1] == counts[axis - 1])
      index[--axis] = 0;
    if (axis == 0) return;
  }
}

}  // namespace

Json array_metadata(const ArraySettings& settings) {
  return settings.format == 2 ? metadata_v2(settings) : metadata_v3(settings);
}

std::vector<std::pair<std::string, Json>> group_metadata(int format, const Json& attributes) {
  if (format == 2) return {{".zattrs", attributes}, {".zgroup", Json{{"zarr_format", 2}}}};
  return {
      {"zarr.json", Json{{"attributes", attributes}, {"zarr_format", 3}, {"node_type", "group"}}}};
}

ArrayWriter::ArrayWriter(fs::path store, std::string path, ArraySettings settings, fs::path staging)
    : store_(std::move(store)),
      path_(std::move(path)),
      settings_(std::move(settings)),
      staging_(std::move(staging)),
      fill_(fill_item(settings_.type, settings_.fill)) {
  check_size("chunk", settings_.chunks, settings_.type.item_bytes);
  settings_.type.big_endian = false;
  const std::vector<int64_t>& shards = settings_.shards;
  if (!shards.empty()) {
    if (settings_.format == 2) {
      throw ConfigError("", "format 2 has no shards", "write format 3, or leave the shards out");
    }
    check_size("shard", shards, settings_.type.item_bytes);
    for (size_t axis = 0; axis < shards.size(); ++axis) {
      if (shards[axis] % settings_.chunks[axis] == 0) continue;
      throw ConfigError("", concat("a shard of ", shards[axis], " items along axis ", axis,
                                   " is no multiple of a chunk, ", settings_.chunks[axis]));
    }
  }
  files_ = ChunkGrid(settings_.shape, shards.empty() ? settings_.chunks : shards);
}

std::vector<int64_t> ArrayWriter::num_files() const {
  std::vector<int64_t> counts = files_.shape();
  for (size_t axis = 0; axis < counts.size(); ++axis)
    counts[axis] = (counts[axis] + files_.chunk_shape()[axis] - 1) / files_.chunk_shape()[axis];
  return counts;
}

Region ArrayWriter::region_of(std::span<const int64_t> file) const {
  Region region;
  for (size_t axis = 0; axis < file.size(); ++axis) {
    region.begin.push_back(file[axis] * files_.chunk_shape()[axis]);
    region.end.push_back(
        std::min(region.begin.back() + files_.chunk_shape()[axis], files_.shape()[axis]));
  }
  return region;
}

std::string ArrayWriter::key(std::span<const int64_t> file) const {
  const bool is_v3 = settings_.format == 3;
  const ChunkKeys keys{.has_prefix = is_v3, .separator = is_v3 ? '/' : '.'};
  return concat(path_, "/", keys.key(file));
}

void ArrayWriter::write_metadata() const {
  const fs::path folder = store_ / path_;
  if (settings_.format == 3)
    return write_staged_json(staging_, folder / "zarr.json", array_metadata(settings_));
  if (!settings_.attributes.empty())
    write_staged_json(staging_, folder / ".zattrs", settings_.attributes);
  write_staged_json(staging_, folder / ".zarray", array_metadata(settings_));
}

// A whole chunk, what overhangs the array filled up.
void ArrayWriter::encode_chunk(const Region& region, const ItemBlock& block,
                               WriteScratch& scratch) const {
  const std::vector<int64_t>& chunk = settings_.chunks;
  const int64_t item_bytes = settings_.type.item_bytes;
  const size_t bytes = static_cast<size_t>(product(chunk) * item_bytes);
  std::vector<int64_t> extent(chunk.size()), first(chunk.size()), shape(chunk.size());
  bool is_whole = true;
  for (size_t axis = 0; axis < chunk.size(); ++axis) {
    extent[axis] = region.end[axis] - region.begin[axis];
    first[axis] = region.begin[axis] - block.region.begin[axis];
    shape[axis] = block.region.end[axis] - block.region.begin[axis];
    is_whole = is_whole && extent[axis] == chunk[axis];
  }
  if (is_whole && extent == shape)
    return encode(settings_.compression, block.items, item_bytes, scratch.encoded,
                  settings_.threads);
  scratch.items.resize(bytes);
  if (!is_whole) {
    for (size_t at = 0; at < bytes; at += fill_.size())
      std::memcpy(scratch.items.data() + at, fill_.data(), fill_.size());
  }
  copy_block(block.items.data(), {shape, first}, scratch.items.data(),
             {chunk, std::vector<int64_t>(chunk.size(), 0)}, extent, item_bytes);
  encode(settings_.compression, scratch.items.bytes(), item_bytes, scratch.encoded,
         settings_.threads);
}

void ArrayWriter::append_shard(const Region& region, const ItemBlock& block, WriteScratch& scratch,
                               std::vector<std::byte>& shard) const {
  constexpr uint64_t kAbsent = ~uint64_t{0};
  const std::vector<int64_t>& chunk = settings_.chunks;
  std::vector<int64_t> counts(chunk.size());
  for (size_t axis = 0; axis < chunk.size(); ++axis)
    counts[axis] = settings_.shards[axis] / chunk[axis];
  std::vector<uint64_t> index;
  for_each_index(counts, [&](const std::vector<int64_t>& at) {
    Region part = region;
    bool is_inside = true;
    for (size_t axis = 0; axis < chunk.size(); ++axis) {
      part.begin[axis] += at[axis] * chunk[axis];
      part.end[axis] = std::min(part.begin[axis] + chunk[axis], region.end[axis]);
      is_inside = is_inside && part.begin[axis] < part.end[axis];
    }
    if (!is_inside || covers(block.absent, part)) {
      index.insert(index.end(), {kAbsent, kAbsent});
      return;
    }
    encode_chunk(part, block, scratch);
    index.insert(index.end(), {shard.size(), scratch.encoded.size()});
    const std::span<const std::byte> bytes = scratch.encoded.bytes();
    shard.insert(shard.end(), bytes.begin(), bytes.end());
  });
  const std::span<const std::byte> bytes = std::as_bytes(std::span(index));
  const uint32_t checksum = crc32c(bytes);
  const std::span<const std::byte> sum = std::as_bytes(std::span(&checksum, 1));
  shard.insert(shard.end(), bytes.begin(), bytes.end());
  shard.insert(shard.end(), sum.begin(), sum.end());
}

int64_t ArrayWriter::write(std::span<const int64_t> file, const ItemBlock& block,
                           WriteScratch& scratch) const {
  const Region region = region_of(file);
  const fs::path path = store_ / key(file);
  if (covers(block.absent, region)) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR)
      throw Error(concat("cannot remove '", path.string(), "': ", system_error_text()));
    return 0;
  }
  if (settings_.shards.empty()) {
    encode_file(file, block, scratch);
    return write_encoded(file, scratch);
  }
  std::vector<std::byte> shard;
  append_shard(region, block, scratch, shard);
  write_staged(staging_, path, shard);
  return static_cast<int64_t>(shard.size());
}

void ArrayWriter::encode_file(std::span<const int64_t> file, const ItemBlock& block,
                              WriteScratch& scratch) const {
  AIFS_CHECK(settings_.shards.empty(), "a shard is encoded and written at once");
  encode_chunk(region_of(file), block, scratch);
}

int64_t ArrayWriter::write_encoded(std::span<const int64_t> file,
                                   const WriteScratch& scratch) const {
  write_staged(staging_, store_ / key(file), scratch.encoded.bytes());
  return static_cast<int64_t>(scratch.encoded.size());
}

void write_staged(const fs::path& staging, const fs::path& path, std::span<const std::byte> bytes) {
  const fs::path temporary = staging / unique_suffix();
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0)
    throw Error(concat("cannot create '", temporary.string(), "': ", system_error_text()));
  try {
    write_all(fd, bytes, path);
  } catch (const Error&) {
    ::close(fd);
    ::unlink(temporary.c_str());  // half a file would only take space
    throw;
  }
  if (::close(fd) != 0)
    throw Error(concat("cannot write '", path.string(), "': ", system_error_text()));
  if (::rename(temporary.c_str(), path.c_str()) == 0) return;
  make_directories(path.parent_path());
  replace_file(temporary, path);
}

void write_staged_json(const fs::path& staging, const fs::path& path, const Json& json) {
  const std::string text = json.dump(4);
  write_staged(staging, path, bytes_of(text));
}

void sync_store(const fs::path& store) {
  const int fd = ::open(store.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  const int result = ::syncfs(fd);
  const std::string why = system_error_text();
  ::close(fd);
  if (result != 0) throw Error(concat("cannot flush '", store.string(), "': ", why));
}

}  // namespace aifs::zarr
