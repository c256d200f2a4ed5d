// SPDX-License-Identifier: Apache-2.0
// The index of a shard (codec sharding_indexed of format 3): where in the file each chunk lies.
// For every chunk, in C order, two u64 (little endian): offset and size; both 2^64-1 if absent.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/zarr/array_meta.h"
#include "data/zarr/codec.h"

namespace aifs::zarr {

// Which shard a chunk lies in, and at which position of its index.
struct ShardPosition {
  std::vector<int64_t> shard;
  int64_t position = 0;
};
ShardPosition locate_in_shard(const ArrayMeta& meta, std::span<const int64_t> chunk);

// Bytes of a decoded shard without its index.
int64_t shard_bytes(const ArrayMeta& meta);

// Bytes of the index, with its checksum if it has one.
size_t shard_index_bytes(const ArrayMeta& meta);

// Returns where the index lies in a shard of `size` bytes. Throws DataError if the shard is too
// short.
ByteRange shard_index_range(const ArrayMeta& meta, size_t size);

// Throws DataError if the checksum is wrong.
void check_shard_index(const ArrayMeta& meta, std::span<const std::byte> index);

// The bytes of one chunk in the shard; nothing if it is absent. Throws DataError if the entry is
// nonsense.
std::optional<ByteRange> find_in_shard(std::span<const std::byte> index, int64_t position);

}  // namespace aifs::zarr
