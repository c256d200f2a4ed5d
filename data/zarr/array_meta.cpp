// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/array_meta.h"

#include <nlohmann/json.hpp>

#include "core/check.h"

namespace aifs::zarr {

namespace {

constexpr size_t kMaxRank = 32;
constexpr int64_t kMaxArrayBytes = int64_t{1} << 50;
constexpr int64_t kMaxChunkBytes = int64_t{1} << 60;

}  // namespace

std::string ChunkKeys::key(std::span<const int64_t> chunk) const {
  std::string key = has_prefix ? "c" : "";
  for (const int64_t index : chunk) {
    if (!key.empty()) key += separator;
    key += std::to_string(index);
  }
  return key.empty() ? "0" : key;
}

std::vector<int64_t> ChunkLayout::strides() const {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t k = axis_order.size(); k-- > 0;) {
    strides[axis_order[k]] = stride;
    stride *= shape[axis_order[k]];
  }
  return strides;
}

std::vector<int64_t> Sharding::chunks_per_axis(const std::vector<int64_t>& chunk_shape) const {
  std::vector<int64_t> chunks(shape.size());
  for (size_t axis = 0; axis < shape.size(); ++axis)
    chunks[axis] = shape[axis] / chunk_shape[axis];
  return chunks;
}

int64_t ArrayMeta::chunk_bytes() const {
  int64_t bytes = type.item_bytes;
  for (const int64_t length : chunk.shape)
    bytes *= length;
  return bytes;
}

std::vector<int64_t> parse_lengths(const Json& value, const char* what, int64_t min,
                                   int64_t item_bytes, int64_t max_bytes) {
  if (!value.is_array() || value.size() > kMaxRank) {
    throw DataError(
        concat(what, " must be a list of at most ", kMaxRank, " integers, not ", shown(value)));
  }
  std::vector<int64_t> lengths;
  __int128 bytes = item_bytes;
  for (const Json& element : value) {
    const bool fits = element.is_number_unsigned()
                          ? element.get<uint64_t>() <= static_cast<uint64_t>(max_bytes)
                          : element.is_number_integer();
    if (!fits || element.get<int64_t>() < min) {
      throw DataError(concat(what, " ", shown(value), ": ", shown(element),
                             " is not an integer from ", min, " to ", max_bytes));
    }
    lengths.push_back(element.get<int64_t>());
    bytes *= lengths.back() == 0 ? 1 : lengths.back();
    if (bytes > max_bytes) {
      throw DataError(concat(what, " ", shown(value), " of ", item_bytes,
                             "-byte items needs more than ", max_bytes, " bytes"));
    }
  }
  return lengths;
}

std::vector<int64_t> parse_shape(const Json& value, const DataType& type) {
  return parse_lengths(value, "shape", 0, type.item_bytes, kMaxArrayBytes);
}

std::vector<int64_t> parse_chunk_shape(const Json& value, const char* chunks_name,
                                       const DataType& type, size_t rank) {
  auto chunks = parse_lengths(value, chunks_name, 1, type.item_bytes, kMaxChunkBytes);
  if (chunks.size() != rank) {
    throw DataError(concat(chunks_name, " ", shown(value), " has ", chunks.size(),
                           " axes, the array has ", rank));
  }
  return chunks;
}

const Json& required(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) throw DataError(concat("has no member '", key, "'"));
  return *found;
}

}  // namespace aifs::zarr
