// SPDX-License-Identifier: Apache-2.0
// An array of a store: reads hyperslabs, or single decoded chunks for callers that place the items
// themselves. Immutable after construction; all functions may be called by several threads.
//
// Errors are DataErrors that name the file of the chunk. An absent chunk is no error: Zarr leaves
// out chunks that hold nothing but the fill value. If the array defines no fill value, nothing says
// what an absent chunk holds, and reading it is an error that names the metadata.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/zarr/array_meta.h"
#include "data/zarr/chunk_cache.h"
#include "data/zarr/chunk_grid.h"
#include "data/zarr/chunk_pieces.h"
#include "data/zarr/store.h"

namespace aifs::zarr {

// The items of a chunk, laid out as Array::meta().chunk says.
struct ChunkView {
  const std::byte* items = nullptr;  // null if the chunk is absent
  ChunkCache::Entry owner = {};      // of a cached chunk; else the items lie in the scratch
};

// The encoded bytes of a chunk: a range of an open file.
struct EncodedChunk {
  std::unique_ptr<const ValueFile> file;  // null: the chunk lies in a shard that is compressed
  ByteRange bytes;
};

enum class AbsentChunk { kFill, kError };

class Array {
 public:
  // The array at `path` of the store. `cache_bytes` limits what cached_chunk() keeps.
  // Throws DataError if there is none or if its metadata cannot be used.
  Array(std::shared_ptr<const Store> store, const std::string& path, size_t cache_bytes = 0);

  const ArrayMeta& meta() const { return meta_; }
  const ChunkGrid& grid() const { return grid_; }
  const ChunkCache& cache() const { return *cache_; }

  // The items of a region in C order, as float, double or int64_t.
  template <class T>
  std::vector<T> read(const Region& region, AbsentChunk absent = AbsentChunk::kFill) const;

  // Decodes one chunk into `scratch`. `needed`: see DecodeRequest.
  ChunkView decode_chunk(std::span<const int64_t> chunk, std::span<const ByteRange> needed,
                         ChunkScratch& scratch) const;
  // Opens a chunk for decoding in pieces; null if it is absent. The array outlives the pieces.
  // Throws as decode_chunk().
  std::unique_ptr<ChunkPieces> open_chunk(std::span<const int64_t> chunk) const;
  // Opens the encoded bytes of a chunk, for callers that decode it themselves; nothing if it is
  // absent. Throws DataError if there are more than the chunk can need.
  std::optional<EncodedChunk> open_encoded(std::span<const int64_t> chunk) const;
  // The whole chunk, from the cache if it is there.
  ChunkView cached_chunk(std::span<const int64_t> chunk) const;

  // Visits which chunks of the grid are there (shards, if there are any; of both, only the first
  // coordinate where chunks lie in folders below folders), in any order, from one list of a folder.
  // False if the store cannot be listed.
  bool list_chunks(const std::function<void(std::span<const int64_t> chunk)>& visit) const;
  // Lists chunks in folders below folders, of those whose first coordinate is given,
  // with all coordinates: one list for every folder.
  bool list_chunks_below(int64_t first,
                         const std::function<void(std::span<const int64_t> chunk)>& visit) const;
  // True if the file is there that the chunk is in, or would be.
  bool has_file(std::span<const int64_t> chunk) const {
    return store_->size(chunk_key(chunk)).has_value();
  }

  // The file of a chunk, for messages.
  std::string chunk_path(std::span<const int64_t> chunk) const;
  // "'<file>' is missing".
  std::string absent_text(std::span<const int64_t> chunk) const;

 private:
  std::string chunk_key(std::span<const int64_t> chunk) const;
  size_t decoded_bytes() const;
  // Does what open_encoded() does; errors do not name the file.
  std::optional<EncodedChunk> find_encoded(std::span<const int64_t> chunk) const;
  [[noreturn]] void throw_undefined(std::span<const int64_t> chunk) const;
  [[noreturn]] void throw_too_large(std::span<const int64_t> chunk, size_t bytes) const;
  bool fetch(std::span<const int64_t> chunk, ChunkScratch& scratch) const;
  // Says where a shard holds a chunk, and the shard itself if it is compressed.
  struct ShardPlace {
    std::string key;
    ByteRange bytes;
    ChunkCache::Entry shard;
  };
  std::optional<ShardPlace> place_in_shard(std::span<const int64_t> chunk) const;
  // Returns what `body` returns; its errors name the file of the chunk.
  template <class Body>
  auto in_chunk(std::span<const int64_t> chunk, Body&& body) const;
  friend class WholeChunk;
  bool fetch_from_shard(std::span<const int64_t> chunk, ChunkScratch& scratch) const;
  ChunkCache::Entry load_shard_index(const std::string& key) const;
  ChunkCache::Entry load_shard(const std::string& key) const;

  std::shared_ptr<const Store> store_;
  std::string path_;
  ArrayMeta meta_;
  ChunkGrid grid_;
  std::unique_ptr<ChunkCache> cache_;        // decoded chunks
  std::unique_ptr<ChunkCache> shard_cache_;  // indices of shards, or whole ones if compressed
};

}  // namespace aifs::zarr
