// SPDX-License-Identifier: Apache-2.0
#include "data/tools/reshape.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_io.h"
#include "data/sources/anemoi_dataset.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::data;

namespace {

DatasetOptions options_of(const fs::path& folder) {
  DatasetOptions options;
  options.dataset = folder.string();
  return options;
}

// All fields that two datasets have, as they are read.
void check_same(const fs::path& a, const fs::path& b) {
  const AnemoiDataset one(options_of(a)), other(options_of(b));
  const DatasetInfo &info = one.info(), &info2 = other.info();
  REQUIRE(info.dates_s == info2.dates_s);
  REQUIRE(info.variables == info2.variables);
  CHECK(info.missing_rows == info2.missing_rows);
  CHECK(info.latitudes_deg == info2.latitudes_deg);
  CHECK(info.longitudes_deg == info2.longitudes_deg);
  CHECK(info.statistics.mean == info2.statistics.mean);
  CHECK(info.statistics.stdev == info2.statistics.stdev);
  REQUIRE(info.tendencies.size() == info2.tendencies.size());
  for (const auto& [delta_s, statistics] : info.tendencies)
    CHECK(statistics.maximum == info2.tendencies.at(delta_s).maximum);
  const auto count =
      static_cast<size_t>(info.num_nodes() * info.ensemble_size) * info.variables.size();
  std::vector<float> x(count), y(count);
  for (int64_t row = 0; row < info.num_rows(); ++row) {
    if (std::ranges::binary_search(info.missing_rows, row)) continue;
    one.read(row, {0, info.num_nodes()}, x);
    other.read(row, {0, info.num_nodes()}, y);
    REQUIRE(x == y);
  }
}

test::AnemoiSpec sample() {
  return {.num_dates = 11, .num_members = 2, .num_cells = 30, .missing = {4}};
}

}  // namespace

TEST_CASE("a copy with other chunks, codec and format holds the same, to and fro", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path from = folder.path() / "a.zarr";
  test::write_to_folder(*test::write_anemoi(sample()), from);
  std::vector<ReshapeOptions> wishes(7);
  wishes[0].cell_chunks = 4;
  wishes[1] = {.format = 3, .dates = 4, .cells = 7};
  wishes[2] = {.format = 3, .cells = 8, .shard_dates = 5};
  wishes[2].compression = zarr::Compression::parse("zstd");
  wishes[3] = {.dates = 11, .cells = 30};
  wishes[3].compression = zarr::Compression::parse("none");
  wishes[4] = {.dates = 3, .consolidated = true};
  wishes[5] = {.format = 3, .consolidated = true};
  wishes[6] = {.format = 3, .dates = 2, .cells = 5, .shard_dates = 4, .shard_cells = 10};
  int64_t number = 0;
  for (ReshapeOptions wish : wishes) {
    wish.threads = 1 + number % 3;
    const fs::path to = folder.path() / concat("b", number),
                   back = folder.path() / concat("c", number);
    const auto store = open_store(from.string());
    CAPTURE(number++);
    const ReshapeResult result = reshape_store(store, to.string(), wish, nullptr);
    CHECK(result.reused == 0);
    CHECK(result.rewritten == 0);
    check_same(from, to);
    CHECK_FALSE(path_exists(to / "_copy"));
    reshape_store(open_store(to.string()), back.string(),
                  {.format = 2,
                   .dates = 1,
                   .cells = 30,
                   .compression = zarr::Compression::parse("blosc-lz4")},
                  nullptr);
    check_same(from, back);
    // The first form has come back: the same files of fields, and none for the missing date.
    for (int64_t date = 0; date < 11; ++date) {
      const std::string key = concat("data/", date, ".0.0.0");
      CHECK(path_exists(back / key) == (date != 4));
    }
  }
  CHECK(path_exists(folder.path() / "b4/.zmetadata"));
  CHECK(read_file(folder.path() / "b5/zarr.json").find("\"consolidated_metadata\"") !=
        std::string::npos);
}

TEST_CASE("every type of data keeps its bits", "[data]") {
  const test::TemporaryFolder folder;
  for (const char* dtype : {"<f8", ">f4", "<f2", "<i2"}) {
    test::AnemoiSpec spec{.num_dates = 3, .num_cells = 10, .dtype = dtype};
    const fs::path from = folder.path() / (dtype + 1), to = from.string() + "_copy";
    test::write_to_folder(*test::write_anemoi(spec), from);
    if (std::string(dtype) == "<i2") {  // NaN is no integer
      auto store = test::write_anemoi(spec);
      test::edit(*store, "data/.zarray", "\"NaN\"", "0");
      test::write_to_folder(*store, from);
    }
    reshape_store(open_store(from.string()), to.string(), {.format = 3, .cells = 4}, nullptr);
    CAPTURE(dtype);
    check_same(from, to);
    const zarr::Array array(open_store(to.string()), "data");
    CHECK(array.meta().type.name() == zarr::parse_numpy_type(dtype).name());
  }
}

TEST_CASE("an interrupted copy goes on, and what was damaged meanwhile is written again",
          "[data]") {
  const test::TemporaryFolder folder;
  const fs::path from = folder.path() / "a.zarr", to = folder.path() / "b.zarr";
  test::write_to_folder(*test::write_anemoi(sample()), from);
  const ReshapeOptions wish{.cell_chunks = 3, .threads = 1};
  // Interrupted by a chunk that cannot be decoded.
  const fs::path chunk = from / "data/7.0.1.0", aside = folder.path() / "aside";
  fs::rename(chunk, aside);
  std::ofstream(chunk) << "no chunk";
  CHECK_THROWS_AS(reshape_store(open_store(from.string()), to.string(), wish, nullptr), DataError);
  CHECK_THROWS_AS(AnemoiDataset(options_of(to)), DataError);  // unfinished
  fs::rename(aside, chunk);
  CHECK_THROWS_AS(
      reshape_store(open_store(from.string()), to.string(), {.cell_chunks = 2}, nullptr),
      ConfigError);  // another copy
  // A file that was complete is not any more.
  REQUIRE(path_exists(to / "data/2.0.0.1"));
  fs::resize_file(to / "data/2.0.0.1", 20);
  const ReshapeResult result = reshape_store(open_store(from.string()), to.string(), wish, nullptr);
  CHECK(result.reused == 7 * 2 * 3);
  CHECK(result.rewritten == 1);
  check_same(from, to);
}

TEST_CASE("what does not fit the store is refused before anything is written", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path from = folder.path() / "a.zarr";
  test::write_to_folder(*test::write_anemoi(sample()), from);
  const auto refused = [&](const ReshapeOptions& options) {
    const fs::path to = folder.path() / "x";
    CHECK_THROWS_AS(reshape_store(open_store(from.string()), to.string(), options, nullptr),
                    ConfigError);
    CHECK_FALSE(path_exists(to));
  };
  refused({.dates = 12});
  refused({.cells = 31});
  refused({.cells = 4, .cell_chunks = 2});
  refused({.format = 2, .shard_dates = 4});
  refused({.format = 3, .dates = 2, .shard_dates = 3});
  CHECK_THROWS_AS(reshape_store(open_store(from.string()), from.string(), {}, nullptr),
                  ConfigError);  // onto itself
}
