// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/shard.h"

#include <cstring>

#include "core/check.h"
#include "data/zarr/codec_crc32c.h"

namespace aifs::zarr {

namespace {

constexpr size_t kEntryBytes = 16;
constexpr size_t kChecksumBytes = 4;

uint64_t u64_at(std::span<const std::byte> bytes, size_t offset) {
  uint64_t value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

ShardPosition locate_in_shard(const ArrayMeta& meta, std::span<const int64_t> chunk) {
  const std::vector<int64_t> chunks = meta.sharding->chunks_per_axis(meta.chunk.shape);
  ShardPosition result;
  for (size_t axis = 0; axis < chunks.size(); ++axis) {
    result.shard.push_back(chunk[axis] / chunks[axis]);
    result.position = result.position * chunks[axis] + chunk[axis] % chunks[axis];
  }
  return result;
}

int64_t shard_bytes(const ArrayMeta& meta) {
  int64_t bytes = meta.type.item_bytes;
  for (const int64_t length : meta.sharding->shape)
    bytes *= length;
  return bytes;
}

size_t shard_index_bytes(const ArrayMeta& meta) {
  size_t bytes = kEntryBytes;
  for (const int64_t chunks : meta.sharding->chunks_per_axis(meta.chunk.shape))
    bytes *= static_cast<size_t>(chunks);
  return bytes + (meta.sharding->index_has_checksum ? kChecksumBytes : 0);
}

ByteRange shard_index_range(const ArrayMeta& meta, size_t size) {
  const size_t bytes = shard_index_bytes(meta);
  if (bytes > size) {
    throw_corrupt(concat("a shard index needs ", bytes, " bytes, the shard has ", size));
  }
  const size_t begin = meta.sharding->index_at_start ? 0 : size - bytes;
  return {begin, begin + bytes};
}

void check_shard_index(const ArrayMeta& meta, std::span<const std::byte> index) {
  if (!meta.sharding->index_has_checksum) return;
  const std::span<const std::byte> entries = index.first(index.size() - kChecksumBytes);
  uint32_t stored;
  std::memcpy(&stored, index.data() + entries.size(), sizeof stored);
  if (crc32c(entries) != stored) throw_corrupt("the checksum of the shard index does not match");
}

std::optional<ByteRange> find_in_shard(std::span<const std::byte> index, int64_t position) {
  const size_t at = kEntryBytes * static_cast<size_t>(position);
  const uint64_t offset = u64_at(index, at), bytes = u64_at(index, at + 8);
  if (offset == UINT64_MAX && bytes == UINT64_MAX) return std::nullopt;
  if (offset > UINT64_MAX - bytes) {
    throw_corrupt(concat("the shard index puts a chunk at byte ", offset));
  }
  return ByteRange{offset, offset + bytes};
}

}  // namespace aifs::zarr
