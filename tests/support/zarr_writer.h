// SPDX-License-Identifier: Apache-2.0
// Writes small Zarr stores for tests, format 2, into memory. Deliberately naive, so that it shares
// no thought with the reader: one item at a time, chunk by chunk. What overhangs the array in edge
// chunks is filled with noise, which no reader may ever show.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/zarr/store.h"

namespace aifs::test {

struct ArraySpec {
  std::vector<int64_t> shape, chunks;
  std::string dtype = "<f4";
  std::string compressor = "blosc";  // or "null"
  char order = 'C';
  char separator = '.';
  std::string fill_value = "\"NaN\"";  // JSON
  std::string inner_codec = "lz4";     // of Blosc
  int shuffle = 1;
  size_t block_bytes = 0;
  std::vector<std::string> absent = {};  // chunks that are left out: "2.0.0.0"
};

using ItemValue = std::function<double(const std::vector<int64_t>& index)>;

// Writes `path`/.zarray and all chunks.
void write_array(zarr::MemoryStore& store, const std::string& path, const ArraySpec& spec,
                 const ItemValue& value);

// One number as numpy stores it with a type such as ">f4", "<i2", "|b1", "<M8[s]".
std::string encode_item(const std::string& dtype, double value);

// A Blosc buffer. `shuffle`: 0 none, 1 bytes, 2 bits; blocks of several threads come in any order.
std::string blosc_encode(const std::string& bytes, size_t type_bytes,
                         const std::string& inner_codec = "lz4", int shuffle = 1,
                         size_t block_bytes = 0, int threads = 1);

struct AnemoiSpec {
  std::vector<std::string> variables{"2t", "msl", "q_1000", "q_500", "tp"};
  int64_t num_dates = 6, num_members = 1, num_cells = 12;
  std::vector<int64_t> chunks = {};  // of data; empty: Anemoi's (1, V, 1, N)
  std::string dtype = "<f4";
  std::string compressor = "blosc";
  std::string inner_codec = "lz4";
  size_t block_bytes = 0;  // of Blosc; 0: the library chooses
  char order = 'C';
  std::string frequency = "6h";
  int64_t first_date_s = 1577836800;  // 2020-01-01
  int64_t step_s = 21600;
  std::vector<int64_t> missing = {};  // rows whose chunk is absent and whose date is declared
  std::vector<std::string> tendencies{"6h", "1d"};
};

// A gridded Anemoi dataset whose values say where they belong.
std::shared_ptr<zarr::MemoryStore> write_anemoi(const AnemoiSpec& spec);

// The value of "data" at one place: an integer below 2^24 that differs everywhere.
float position_value(const AnemoiSpec& spec, int64_t date, int64_t variable, int64_t member,
                     int64_t cell);
double latitude_deg(int64_t cell);
double longitude_deg(int64_t cell);
// The values of statistic k (mean, stdev, minimum, maximum) and of those of the tendency t.
double statistic_value(int64_t variable, int64_t k);
double tendency_value(int64_t variable, int64_t k, int64_t tendency);

// Writes the keys of a store as files.
void write_to_folder(const zarr::MemoryStore& store, const std::filesystem::path& folder);

// Replaces a piece of text in the value of a key; the piece must be there.
void edit(zarr::MemoryStore& store, const std::string& key, const std::string& from,
          const std::string& to);

}  // namespace aifs::test
