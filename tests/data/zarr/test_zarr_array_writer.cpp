// SPDX-License-Identifier: Apache-2.0
// What is written is read back by the reader, bit for bit, in every form; the reader itself is
// checked against stores that zarr-python wrote.
#include "data/zarr/array_writer.h"

#include <cmath>
#include <cstring>

#include "core/check.h"
#include "data/zarr/array.h"
#include "data/zarr/raw_items.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::zarr;
using Ints = std::vector<int64_t>;

namespace {

std::vector<float> counted(const Ints& shape) {
  int64_t items = 1;
  for (const int64_t length : shape)
    items *= length;
  std::vector<float> values(static_cast<size_t>(items));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i) * 0.37f - 11.0f;
  return values;
}

// Writes all files of an array from one block.
template <class T>
void write_all(const ArrayWriter& writer, const std::vector<T>& values,
               std::vector<Region> absent = {}) {
  const Region whole = Region::whole(writer.settings().shape);
  const ItemBlock block{whole, std::as_bytes(std::span(values)), std::move(absent)};
  WriteScratch scratch;
  writer.files().for_each_part(
      whole, [&](const ChunkPart& part) { writer.write(part.chunk, block, scratch); });
  writer.write_metadata();
}

std::vector<Compression> all_compressions() {
  std::vector<Compression> all;
  for (const char* name : {"blosc-lz4", "blosc-lz4hc", "blosc-zstd", "blosc-zlib", "zstd", "none"})
    all.push_back(Compression::parse(name));
  all.push_back({Compression::Kind::kBlosc, "lz4", 5, 2});
  all.push_back({Compression::Kind::kBlosc, "lz4", 0, 0});
  return all;
}

// Returns what is in the files, as the reader has it.
std::vector<float> read_back(const fs::path& folder, const std::string& name) {
  const auto store = std::make_shared<DirectoryStore>(folder.string());
  const Array array(store, name);
  return array.read<float>(Region::whole(array.meta().shape));
}

}  // namespace

TEST_CASE("what is written reads back, in both formats, by every codec, with edge chunks",
          "[zarr]") {
  const test::TemporaryFolder folder;
  const Ints shape{5, 3, 2, 37};
  const std::vector<float> values = counted(shape);
  int64_t number = 0;
  for (const int format : {2, 3}) {
    for (const Compression& compression : all_compressions()) {
      for (const Ints& chunks : {Ints{1, 3, 1, 37}, Ints{2, 2, 2, 10}, Ints{5, 3, 2, 37}}) {
        const std::string name = concat("a", number++);
        ArraySettings settings{.format = format, .shape = shape, .chunks = chunks};
        settings.compression = compression;
        write_all(ArrayWriter(folder.path(), name, settings, folder.path()), values);
        CAPTURE(format, compression.text(), chunks);
        CHECK(read_back(folder.path(), name) == values);
        const DirectoryStore store(folder.path().string());
        const auto json = read_json(store, concat(name, format == 2 ? "/.zarray" : "/zarr.json"));
        REQUIRE(json);
        CHECK(compression_of(*json, format) == compression);
      }
    }
  }
}

TEST_CASE("shards hold their chunks, and leave out what is absent", "[zarr]") {
  const test::TemporaryFolder folder;
  const Ints shape{7, 2, 1, 10};
  std::vector<float> values = counted(shape);
  ArraySettings settings{.format = 3, .shape = shape, .chunks = {1, 2, 1, 4}};
  settings.shards = {3, 2, 1, 12};
  settings.fill.real = std::nan("");
  // Date 4 was never written, nor were the last three dates' cells from 8 on.
  const std::vector<Region> absent{{{4, 0, 0, 0}, {5, 2, 1, 10}}, {{6, 0, 0, 0}, {7, 2, 1, 10}}};
  write_all(ArrayWriter(folder.path(), "data", settings, folder.path()), values, absent);
  const auto store = std::make_shared<DirectoryStore>(folder.path().string());
  const Array array(store, "data");
  REQUIRE(array.meta().sharding);
  CHECK(array.meta().sharding->shape == settings.shards);
  CHECK(array.meta().sharding->index_has_checksum);
  const std::vector<float> read = array.read<float>(Region::whole(shape));
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t date = i / 20;
    if (date == 4 || date == 6) {
      CHECK(std::isnan(read[i]));
    } else {
      CHECK(read[i] == values[i]);
    }
  }
  CHECK(path_exists(folder.path() / "data/c/1/0/0/0"));
  CHECK_FALSE(path_exists(folder.path() / "data/c/2/0/0/0"));  // of date 6 alone
}

TEST_CASE("a file of nothing but absent chunks is not there, also if it was", "[zarr]") {
  const test::TemporaryFolder folder;
  const std::vector<float> values = counted({2, 3});
  ArraySettings settings{.shape = {2, 3}, .chunks = {1, 3}};
  const ArrayWriter writer(folder.path(), "a", settings, folder.path());
  write_all(writer, values);
  CHECK(path_exists(folder.path() / "a/1.0"));
  write_all(writer, values, {{{1, 0}, {2, 3}}});
  CHECK(path_exists(folder.path() / "a/0.0"));
  CHECK_FALSE(path_exists(folder.path() / "a/1.0"));
}

TEST_CASE("every type keeps its bits and its name", "[zarr]") {
  const test::TemporaryFolder folder;
  for (const char* type : {"|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2",
                           "<f4", "<f8", "<M8[s]", "<M8[ns]", "<m8[25us]", "<M8[6h]"}) {
    for (const int format : {2, 3}) {
      ArraySettings settings{.format = format, .shape = {6}, .chunks = {4}};
      settings.type = parse_numpy_type(type);
      std::vector<uint8_t> bytes;
      for (int64_t i = 0; i < 6 * settings.type.item_bytes; ++i)
        bytes.push_back(static_cast<uint8_t>(settings.type.kind == Kind::kBool ? i % 2 : 41 * i));
      const fs::path place = folder.path() / std::to_string(format);
      make_directories(place);
      const ArrayWriter writer(place, "a", settings, place);
      write_all(writer, bytes);
      const Array array(std::make_shared<DirectoryStore>(place.string()), "a");
      CAPTURE(type, format);
      CHECK(array.meta().type.name() == settings.type.name());
      const TimeUnit unit = array.meta().type.unit, wanted = settings.type.unit;
      CHECK(unit.seconds * wanted.parts == wanted.seconds * unit.parts);
      std::vector<uint8_t> read(bytes.size());
      std::vector<Region> absent;
      ChunkScratch scratch;
      read_raw(array, Region::whole({6}), std::as_writable_bytes(std::span(read)), absent, scratch);
      CHECK(read == bytes);
      CHECK(absent.empty());
    }
  }
}

TEST_CASE("metadata stand as zarr-python writes them", "[zarr]") {
  ArraySettings settings{.shape = {40, 29, 1, 684}, .chunks = {1, 29, 1, 684}};
  settings.fill.real = std::nan("");
  // Copied from a dataset that anemoi-datasets wrote.
  const Json expected = Json::parse(
      R"({"chunks":[1,29,1,684],
 "compressor":{"blocksize":0,"clevel":5,"cname":"lz4","id":"blosc","shuffle":1},
 "dtype":"<f4","fill_value":"NaN","filters":null,"order":"C","shape":[40,29,1,684],
 "zarr_format":2})");
  CHECK(array_metadata(settings) == expected);
  settings.format = 3;
  settings.compression = {Compression::Kind::kZstd, "", 0, 0};
  settings.attributes = Json{{"_ARRAY_DIMENSIONS", {"time"}}};
  settings.shape = settings.chunks = {13};
  settings.type = parse_numpy_type("<M8[s]");
  settings.fill.integer = kNotATime;
  const Json dates = Json::parse(R"({"shape": [13],
 "data_type": {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}},
 "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [13]}},
 "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
 "fill_value": -9223372036854775808,
 "codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
  {"name": "zstd", "configuration": {"level": 0, "checksum": false}}],
 "attributes": {"_ARRAY_DIMENSIONS": ["time"]},
 "zarr_format": 3, "node_type": "array", "storage_transformers": []})");
  CHECK(array_metadata(settings) == dates);
}

TEST_CASE("what cannot be written is refused before anything is", "[zarr]") {
  const test::TemporaryFolder folder;
  const auto refused = [&](const ArraySettings& settings) {
    CHECK_THROWS_AS(ArrayWriter(folder.path() / "x", "a", settings, folder.path()), ConfigError);
    CHECK_FALSE(path_exists(folder.path() / "x"));
  };
  refused({.format = 2, .shape = {1 << 30}, .chunks = {1 << 30}});  // 4 GiB
  refused({.format = 2, .shape = {8}, .chunks = {4}, .shards = {8}});
  refused({.format = 3, .shape = {8}, .chunks = {4}, .shards = {6}});
  CHECK_THROWS_AS(Compression::parse("gzip"), ConfigError);
  CHECK_THROWS_AS(Compression::parse("blosc-lz4", 10), ConfigError);
  CHECK_THROWS_AS(Compression::parse("none", 1), ConfigError);
}

TEST_CASE("a file that cannot be written is an error that names it", "[zarr]") {
  const test::TemporaryFolder folder;
  write_staged_json(folder.path(), folder.path() / "a", Json::object());
  ArraySettings settings{.shape = {2}, .chunks = {2}};
  const ArrayWriter writer(folder.path(), "a", settings, folder.path());  // "a" is a file
  try {
    write_all(writer, std::vector<float>{1.0f, 2.0f});
    FAIL("it was written");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find(folder.path().string()) != std::string::npos);
  }
}
