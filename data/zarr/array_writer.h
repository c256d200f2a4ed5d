// SPDX-License-Identifier: Apache-2.0
// Writes an array of a store in a folder, formats 2 and 3, shards too. Files appear under their
// names only when they are complete; a program that is killed leaves what it was writing in the
// staging folder. Nothing is flushed to the device: sync_store() does that at the end.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/file_io.h"
#include "data/zarr/chunk_grid.h"
#include "data/zarr/compression.h"
#include "data/zarr/dtype.h"
#include "data/zarr/fill_value.h"

namespace aifs::zarr {

struct ArraySettings {
  int format = 2;
  std::vector<int64_t> shape, chunks;
  std::vector<int64_t> shards = {};  // several chunks a file, format 3; empty: one
  DataType type = {};                // written little endian
  FillValue fill = {};
  Compression compression = {};
  Json attributes = Json::object();
  Json dimension_names = {};  // of format 3; null: none
  int threads = 1;            // of one call of write(), that compress a chunk by Blosc
};

// Returns what .zarray (format 2) or zarr.json holds.
Json array_metadata(const ArraySettings& settings);
// Returns what the files of the root group hold: .zgroup and .zattrs, or zarr.json.
std::vector<std::pair<std::string, Json>> group_metadata(int format, const Json& attributes);

// Items in memory: a region of an array in C order, little endian, and which parts of it are only
// the fill value, because nothing was ever written there.
struct ItemBlock {
  Region region;
  std::span<const std::byte> items;
  std::vector<Region> absent = {};
};

// Memory of one thread that writes.
struct WriteScratch {
  Buffer items, encoded, file;
};

class ArrayWriter {
 public:
  // `staging`: a folder on the same file system, which exists. Throws ConfigError where a chunk or
  // shard cannot be: beyond 2 GiB, shards that chunks do not divide or in format 2.
  ArrayWriter(fs::path store, std::string path, ArraySettings settings, fs::path staging);

  const ArraySettings& settings() const { return settings_; }
  // Returns what one file holds each: shards, or chunks.
  const ChunkGrid& files() const { return files_; }
  // Number of files along each axis.
  std::vector<int64_t> num_files() const;
  // The part of the array that a file holds.
  Region region_of(std::span<const int64_t> file) const;
  // "data/17.0.0.0".
  std::string key(std::span<const int64_t> file) const;

  // .zarray and .zattrs, or zarr.json. Throws Error.
  void write_metadata() const;
  // Writes a file from a block that holds all of its region. Chunks that are only absent are left
  // out; a file of nothing else is removed. Gives the bytes of the file. Any thread. Throws Error.
  int64_t write(std::span<const int64_t> file, const ItemBlock& block, WriteScratch& scratch) const;
  // The two halves of write() for a file of one chunk, which may not be absent: the second needs
  // the scratch memory alone. Throw Error.
  void encode_file(std::span<const int64_t> file, const ItemBlock& block,
                   WriteScratch& scratch) const;
  int64_t write_encoded(std::span<const int64_t> file, const WriteScratch& scratch) const;

 private:
  void encode_chunk(const Region& region, const ItemBlock& block, WriteScratch& scratch) const;
  void append_shard(const Region& region, const ItemBlock& block, WriteScratch& scratch,
                    std::vector<std::byte>& shard) const;

  fs::path store_;
  std::string path_;
  ArraySettings settings_;
  fs::path staging_;
  ChunkGrid files_;
  std::vector<std::byte> fill_;
};

// Writes a file by way of the staging folder, and makes the folders above it. Throws Error.
void write_staged(const fs::path& staging, const fs::path& path, std::span<const std::byte> bytes);
void write_staged_json(const fs::path& staging, const fs::path& path, const Json& json);

// Makes all that was written to the file system of a store survive a power loss.
void sync_store(const fs::path& store);

}  // namespace aifs::zarr
