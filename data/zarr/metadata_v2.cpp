// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/metadata_v2.h"

#include <nlohmann/json.hpp>
#include <numeric>

#include "core/check.h"
#include "data/zarr/codec_factory.h"
#include "data/zarr/in_file.h"

namespace aifs::zarr {

namespace {

void check_format(const Json& json) {
  if (!json.is_object()) throw DataError(concat("must hold a JSON object, not ", shown(json)));
  const Json& format = required(json, "zarr_format");
  if (format != 2) throw DataError(concat("zarr_format ", shown(format), " is not supported here"));
}

DataType parse_type(const Json& value) {
  if (!value.is_string()) throw DataError(concat("dtype ", shown(value), " is not supported"));
  return parse_numpy_type(value.get<std::string>());
}

CodecChain parse_compressor(const Json& value) {
  if (value.is_null()) return {};
  if (!value.is_object() || !value.contains("id") || !value["id"].is_string()) {
    throw DataError(concat("compressor ", shown(value), " has no codec id"));
  }
  return CodecChain({make_codec_v2(value["id"].get<std::string>())});
}

void check_filters(const Json& json) {
  const auto filters = json.find("filters");
  if (filters == json.end() || filters->is_null() || filters->empty()) return;
  throw DataError(concat("filters ", shown(*filters), " are not supported"),
                  "write the dataset again without filters");
}

std::vector<size_t> parse_order(const Json& value, size_t rank) {
  std::vector<size_t> axes(rank);
  std::iota(axes.begin(), axes.end(), size_t{0});
  if (value == "C") return axes;
  if (value == "F") return {axes.rbegin(), axes.rend()};
  throw DataError(concat("order ", shown(value), " is not \"C\" or \"F\""));
}

char parse_separator(const Json& json) {
  const auto found = json.find("dimension_separator");
  if (found == json.end() || found->is_null() || *found == ".") return '.';
  if (*found == "/") return '/';
  throw DataError(concat("dimension_separator ", shown(*found), " is not \".\" or \"/\""));
}

}  // namespace

ArrayMeta parse_array_v2(const Json& json, const std::string& file) {
  return in_file(file, [&] {
    check_format(json);
    ArrayMeta meta;
    meta.file = file;
    meta.type = parse_type(required(json, "dtype"));
    meta.shape = parse_shape(required(json, "shape"), meta.type);
    meta.chunk.shape =
        parse_chunk_shape(required(json, "chunks"), "chunks", meta.type, meta.shape.size());
    meta.chunk.axis_order = parse_order(required(json, "order"), meta.shape.size());
    check_filters(json);
    meta.chunk.codecs = parse_compressor(required(json, "compressor"));
    meta.fill = parse_fill_value(json.value("fill_value", Json()), meta.type);
    meta.keys = {false, parse_separator(json)};
    return meta;
  });
}

void check_group_v2(const Json& json, const std::string& file) {
  in_file(file, [&] { check_format(json); });
}

}  // namespace aifs::zarr
