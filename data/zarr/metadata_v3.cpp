// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/metadata_v3.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/check.h"
#include "data/zarr/codec_factory.h"
#include "data/zarr/in_file.h"

namespace aifs::zarr {

namespace {

constexpr int64_t kMaxChunksPerShard = int64_t{1} << 24;

// An extension point: {"name": ..., "configuration": {...}} or the bare name.
struct Extension {
  std::string name;
  Json configuration = Json::object();
};

Extension parse_extension(const Json& value, const char* what) {
  if (value.is_string()) return {value.get<std::string>()};
  if (!value.is_object() || !value.contains("name") || !value["name"].is_string()) {
    throw DataError(concat(what, " ", shown(value), " has no name"));
  }
  Extension extension{value["name"].get<std::string>()};
  if (const auto found = value.find("configuration"); found != value.end() && !found->is_null()) {
    if (!found->is_object()) throw DataError(concat(what, " ", shown(value), ": not an object"));
    extension.configuration = *found;
  }
  return extension;
}

void check_node(const Json& json, const char* node_type) {
  if (!json.is_object()) throw DataError(concat("must hold a JSON object, not ", shown(json)));
  const Json& format = required(json, "zarr_format");
  if (format != 3) throw DataError(concat("zarr_format ", shown(format), " is not supported here"));
  const Json& type = required(json, "node_type");
  if (type != node_type) throw DataError(concat("node_type ", shown(type), " is no ", node_type));
}

DataType parse_data_type(const Json& value) {
  const Extension extension = parse_extension(value, "data_type (dtype)");
  const bool is_date = extension.name == "numpy.datetime64";
  if (!is_date && extension.name != "numpy.timedelta64") return parse_type_name(extension.name);
  const Json& unit = required(extension.configuration, "unit");
  const Json scale = extension.configuration.value("scale_factor", Json(1));
  if (!unit.is_string() || !scale.is_number_integer()) {
    throw DataError(concat("data_type ", shown(value), " is not supported"));
  }
  return {is_date ? Kind::kDate : Kind::kDuration, 8, false,
          parse_time_unit(unit.get<std::string>(), scale.get<int64_t>())};
}

ChunkKeys parse_keys(const Json& value) {
  const Extension extension = parse_extension(value, "chunk_key_encoding");
  const bool is_default = extension.name == "default";
  if (!is_default && extension.name != "v2") {
    throw DataError(concat("chunk_key_encoding ", quoted(extension.name), " is not supported"));
  }
  const Json separator = extension.configuration.value("separator", Json(is_default ? "/" : "."));
  if (separator != "." && separator != "/") {
    throw DataError(concat("chunk_key_encoding: separator ", shown(separator)));
  }
  return {is_default, separator.get<std::string>()[0]};
}

// Applies the permutation of one transpose codec to the axes in memory order.
std::vector<size_t> transposed(const std::vector<size_t>& axes, const Json& configuration) {
  const Json& order = required(configuration, "order");
  std::vector<size_t> result, seen(axes.size(), 0);
  if (order.is_array() && order.size() == axes.size()) {
    for (const Json& element : order) {
      const size_t axis = element.is_number_unsigned() ? element.get<size_t>() : axes.size();
      if (axis >= axes.size() || seen[axis]++ > 0) break;
      result.push_back(axes[axis]);
    }
  }
  if (result.size() != axes.size()) {
    throw DataError(concat("codec 'transpose': order ", shown(order), " is no permutation of ",
                           axes.size(), " axes"));
  }
  return result;
}

bool parse_big_endian(const Json& configuration, int64_t item_bytes) {
  const Json endian = configuration.value("endian", Json(item_bytes == 1 ? "little" : ""));
  if (endian != "little" && endian != "big") {
    throw DataError(concat("codec 'bytes': endian ", shown(endian)));
  }
  return endian == "big";
}

// True if the index carries a checksum.
bool parse_index_codecs(const Json& value) {
  std::vector<std::string> names;
  if (value.is_array()) {
    for (const Json& element : value) {
      const Extension codec = parse_extension(element, "index codec");
      const bool big_endian = codec.name == "bytes" && parse_big_endian(codec.configuration, 8);
      names.push_back(big_endian ? "bytes, big endian" : codec.name);
    }
  }
  if (names == std::vector<std::string>{"bytes"}) return false;
  if (names == std::vector<std::string>{"bytes", "crc32c"}) return true;
  throw DataError(concat("codec 'sharding_indexed': index_codecs ", shown(value),
                         " are not supported (bytes, little endian, and crc32c are)"));
}

// The codec list of an array, or of the chunks inside a shard.
class CodecListParser {
 public:
  CodecListParser(ArrayMeta& meta, bool inside_shard) : meta_(meta), inside_shard_(inside_shard) {
    axes_.resize(meta.shape.size());
    std::iota(axes_.begin(), axes_.end(), size_t{0});
  }

  void parse(const Json& list) {
    if (!list.is_array()) throw DataError(concat("codecs ", shown(list), " is not a list"));
    for (const Json& element : list) {
      Extension codec = parse_extension(element, "codec");
      if (codec.name == "endian") codec.name = "bytes";  // its name before the standard was final
      add(codec);
    }
    if (!has_bytes_) throw DataError("codecs hold neither 'bytes' nor 'sharding_indexed'");
    if (!is_sharded_) {
      meta_.chunk.axis_order = axes_;
      meta_.chunk.codecs = CodecChain(std::move(after_));
    } else {
      meta_.sharding->codecs = CodecChain(std::move(after_));
    }
  }

 private:
  void add(const Extension& codec) {
    if (codec.name == "transpose" || codec.name == "bytes" || codec.name == "sharding_indexed") {
      if (has_bytes_)
        throw DataError(concat("codec ", quoted(codec.name), " is in the wrong place"));
      has_bytes_ = codec.name != "transpose";
    } else if (!has_bytes_) {
      throw DataError(concat("codec ", quoted(codec.name), " stands before 'bytes'"));
    }
    if (codec.name == "transpose") {
      axes_ = transposed(axes_, codec.configuration);
    } else if (codec.name == "bytes") {
      meta_.type.big_endian = parse_big_endian(codec.configuration, meta_.type.item_bytes);
    } else if (codec.name == "sharding_indexed") {
      add_sharding(codec.configuration);
    } else {
      after_.push_back(make_codec(codec.name));
    }
  }

  std::shared_ptr<const Codec> make_codec(const std::string& name) const {
    if (!inside_shard_) return make_codec_v3(name);
    try {
      return make_codec_v3(name);
    } catch (const DataError& error) {
      throw DataError(concat("codec 'sharding_indexed': inner ", error.what()), error.hint());
    }
  }

  void add_sharding(const Json& configuration) {
    if (inside_shard_) throw DataError("codec 'sharding_indexed' inside another is not supported");
    if (!std::is_sorted(axes_.begin(), axes_.end())) {
      throw DataError("codec 'transpose' before 'sharding_indexed' is not supported");
    }
    is_sharded_ = true;
    Sharding sharding;
    sharding.shape = meta_.chunk.shape;
    meta_.chunk.shape = parse_chunk_shape(required(configuration, "chunk_shape"),
                                          "codec 'sharding_indexed': "
                                          "chunk_shape",
                                          meta_.type, meta_.shape.size());
    for (size_t axis = 0; axis < sharding.shape.size(); ++axis) {
      if (sharding.shape[axis] % meta_.chunk.shape[axis] != 0) {
        throw DataError(
            concat("codec 'sharding_indexed': chunk_shape does not divide the shard on "
                   "axis ",
                   axis));
      }
    }
    check_index_size(sharding);
    sharding.index_has_checksum = parse_index_codecs(required(configuration, "index_codecs"));
    const Json location = configuration.value("index_location", Json("end"));
    if (location != "start" && location != "end") {
      throw DataError(concat("codec 'sharding_indexed': index_location ", shown(location)));
    }
    sharding.index_at_start = location == "start";
    meta_.sharding = std::move(sharding);
    CodecListParser(meta_, true).parse(required(configuration, "codecs"));
  }

  // The index has an entry for every chunk, so its size must be one that can be read.
  void check_index_size(const Sharding& sharding) const {
    __int128 chunks = 1;
    for (const int64_t count : sharding.chunks_per_axis(meta_.chunk.shape)) {
      chunks *= count;
      if (chunks > kMaxChunksPerShard) {
        throw DataError(concat("codec 'sharding_indexed': chunk_shape makes more than ",
                               kMaxChunksPerShard, " chunks of a shard"));
      }
    }
  }

  ArrayMeta& meta_;
  bool inside_shard_;
  bool has_bytes_ = false, is_sharded_ = false;
  std::vector<size_t> axes_;  // slowest first
  std::vector<std::shared_ptr<const Codec>> after_;
};

std::vector<int64_t> parse_grid(const Json& value, const DataType& type, size_t rank) {
  const Extension grid = parse_extension(value, "chunk_grid");
  if (grid.name != "regular") {
    throw DataError(concat("chunk_grid ", quoted(grid.name), " is not supported"));
  }
  return parse_chunk_shape(required(grid.configuration, "chunk_shape"), "chunk_shape (chunks)",
                           type, rank);
}

void check_transformers(const Json& json) {
  const auto found = json.find("storage_transformers");
  if (found == json.end() || found->is_null() || found->empty()) return;
  throw DataError(concat("storage_transformers ", shown(*found), " are not supported"));
}

}  // namespace

ArrayMeta parse_array_v3(const Json& json, const std::string& file) {
  return in_file(file, [&] {
    check_node(json, "array");
    ArrayMeta meta;
    meta.file = file;
    meta.type = parse_data_type(required(json, "data_type"));
    meta.shape = parse_shape(required(json, "shape"), meta.type);
    meta.chunk.shape = parse_grid(required(json, "chunk_grid"), meta.type, meta.shape.size());
    meta.keys = parse_keys(required(json, "chunk_key_encoding"));
    check_transformers(json);
    CodecListParser(meta, false).parse(required(json, "codecs"));
    meta.fill = parse_fill_value(required(json, "fill_value"), meta.type);
    return meta;
  });
}

Json parse_group_v3(const Json& json, const std::string& file) {
  return in_file(file, [&] {
    check_node(json, "group");
    Json attributes = json.value("attributes", Json::object());
    if (!attributes.is_object()) throw DataError("attributes is not an object");
    return attributes;
  });
}

}  // namespace aifs::zarr
