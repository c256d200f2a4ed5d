// SPDX-License-Identifier: Apache-2.0
// What is known of an array before its chunks are read, whichever format it is stored in
// (metadata_v2.h and metadata_v3.h produce it).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/zarr/codec.h"
#include "data/zarr/dtype.h"
#include "data/zarr/fill_value.h"
#include "data/zarr/json_text.h"

namespace aifs::zarr {

// Names of chunks: "17.0.0.0", "17/0/0/0" or, with the prefix of format 3, "c/17/0/0/0".
struct ChunkKeys {
  bool has_prefix = false;
  char separator = '.';

  std::string key(std::span<const int64_t> chunk) const;
};

// How the bytes of one chunk become an array.
struct ChunkLayout {
  std::vector<int64_t> shape;
  std::vector<size_t> axis_order;  // axes from the slowest to the fastest in memory
  CodecChain codecs;

  // Items between neighbours along each axis.
  std::vector<int64_t> strides() const;
};

// Several chunks in one file, with an index of where each begins.
struct Sharding {
  std::vector<int64_t> shape;  // of a shard; the chunk shape divides it
  bool index_at_start = false;
  bool index_has_checksum = false;
  CodecChain codecs;  // around the whole file; usually none

  // Chunks of one shard, along each axis.
  std::vector<int64_t> chunks_per_axis(const std::vector<int64_t>& chunk_shape) const;
};

struct ArrayMeta {
  std::string file;  // of the metadata, for messages
  std::vector<int64_t> shape;
  DataType type;
  FillValue fill;
  ChunkKeys keys;  // of shards, if there are any
  ChunkLayout chunk;
  std::optional<Sharding> sharding;

  // Bytes of a decoded chunk; may be more than any computer has.
  int64_t chunk_bytes() const;
};

// A JSON list of at most 32 integers, all >= `min`, whose product times `item_bytes` is at most
// `max_bytes`. Throws DataError that calls it `what`.
std::vector<int64_t> parse_lengths(const Json& value, const char* what, int64_t min,
                                   int64_t item_bytes, int64_t max_bytes);
// The lists "shape" and (called `chunks_name`) the chunk shape, which must have the same rank.
// A petabyte is the most an array may have; absurd chunks are refused when one is read.
std::vector<int64_t> parse_shape(const Json& value, const DataType& type);
std::vector<int64_t> parse_chunk_shape(const Json& value, const char* chunks_name,
                                       const DataType& type, size_t rank);

// A member of an object. Throws DataError if it is not there.
const Json& required(const Json& object, const char* key);

}  // namespace aifs::zarr
