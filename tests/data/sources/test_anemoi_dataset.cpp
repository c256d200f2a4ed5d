// SPDX-License-Identifier: Apache-2.0
// Datasets whose values encode (date, variable, member, cell): every slicing error shows.
#include "data/sources/anemoi_dataset.h"

#include <atomic>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/check.h"
#include "core/file_io.h"
#include "core/rng.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::data;
using test::AnemoiSpec;

namespace {

// Reads a row and compares every value with what its place says.
void check_row(const AnemoiDataset& dataset, const AnemoiSpec& spec, int64_t row, NodeRange nodes,
               const std::vector<int64_t>& stored_rows, const std::vector<int64_t>& columns) {
  const DatasetInfo& info = dataset.info();
  std::vector<float> out(
      static_cast<size_t>(info.ensemble_size * nodes.size() * info.num_variables()), -1.0F);
  dataset.read(row, nodes, out);
  size_t i = 0;
  int64_t num_wrong = 0;
  for (int64_t e = 0; e < info.ensemble_size; ++e) {
    for (int64_t n = nodes.begin; n < nodes.end; ++n) {
      for (const int64_t column : columns) {
        const float expected =
            test::position_value(spec, stored_rows[static_cast<size_t>(row)], column, e, n);
        num_wrong += out[i++] == expected ? 0 : 1;
      }
    }
  }
  REQUIRE(num_wrong == 0);
}

std::vector<int64_t> up_to(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    numbers[static_cast<size_t>(i)] = i;
  return numbers;
}

void check_all(const AnemoiDataset& dataset, const AnemoiSpec& spec) {
  for (int64_t row = 0; row < spec.num_dates; ++row) {
    for (const NodeRange nodes : {NodeRange{0, spec.num_cells}, NodeRange{1, 2}, NodeRange{5, 5},
                                  NodeRange{spec.num_cells / 3, spec.num_cells}}) {
      check_row(dataset, spec, row, nodes, up_to(spec.num_dates),
                up_to(static_cast<int64_t>(spec.variables.size())));
    }
  }
}

}  // namespace

TEST_CASE("rows of all kinds of chunks, types and orders hold the values of their place",
          "[anemoi_dataset]") {
  for (const std::vector<int64_t>& chunks : std::vector<std::vector<int64_t>>{
           {}, {1, 5, 1, 4}, {1, 2, 1, 12}, {4, 3, 2, 5}, {6, 5, 2, 12}, {7, 6, 3, 13}}) {
    for (const char* dtype : {"<f4", ">f4", "<f8", "<i4"}) {
      for (const char order : {'C', 'F'}) {
        AnemoiSpec spec{.num_members = 2, .chunks = chunks, .dtype = dtype, .order = order};
        if (spec.dtype == "<i4") spec.compressor = "null";
        const auto store = test::write_anemoi(spec);
        if (spec.dtype == "<i4") test::edit(*store, "data/.zarray", "\"NaN\"", "0");
        check_all(AnemoiDataset(store, {}), spec);
      }
    }
  }
}

TEST_CASE("random choices of rows and variables equal the brute-force reading",
          "[anemoi_dataset]") {
  Pcg64 rng(9);
  AnemoiSpec spec{.num_dates = 9, .num_members = 1, .num_cells = 700};
  spec.variables.clear();
  for (int v = 0; v < 12; ++v)
    spec.variables.push_back(concat("v", v));
  for (const std::vector<int64_t>& chunks :
       std::vector<std::vector<int64_t>>{{}, {1, 12, 1, 200}, {3, 5, 1, 300}}) {
    spec.chunks = chunks;
    const auto store = test::write_anemoi(spec);
    for (int trial = 0; trial < 30; ++trial) {
      DatasetOptions options;
      std::vector<int64_t> columns = rng.permutation(12);
      columns.resize(1 + rng.next_bounded(11));
      for (const int64_t column : columns)
        options.select.push_back(spec.variables[static_cast<size_t>(column)]);
      if (columns.size() > 1) {
        options.drop.push_back(options.select[0]);
        columns.erase(columns.begin());
      }
      const AnemoiDataset dataset(store, options);
      const auto begin = static_cast<int64_t>(rng.next_bounded(699));
      const NodeRange nodes{begin,
                            begin + 1 + rng.next_bounded(static_cast<uint32_t>(699 - begin))};
      check_row(dataset, spec, rng.next_bounded(8), nodes, up_to(9), columns);
    }
  }
}

TEST_CASE("a few variables of a large chunk are read without decoding the rest",
          "[anemoi_dataset]") {
  AnemoiSpec spec{.num_dates = 1, .num_cells = 400000};
  const auto store = test::write_anemoi(spec);
  // Ruin what lies behind the first variable; whoever decodes it gets an error.
  const std::string key = "data/0.0.0.0";
  std::string bytes = store->values().at(key);
  std::fill(bytes.end() - static_cast<int64_t>(bytes.size()) / 3, bytes.end(), '\xff');
  store->put(key, bytes);
  check_row(AnemoiDataset(store, {.select = {"2t"}}), spec, 0, {0, 400000}, {0}, {0});
  std::vector<float> out(2000000);
  REQUIRE_THROWS_WITH(AnemoiDataset(store, {}).read(0, {0, 400000}, out), ContainsSubstring(key));
}

TEST_CASE("the options reach dates, statistics and missing rows together", "[anemoi_dataset]") {
  const AnemoiSpec spec{.num_dates = 12, .missing = {4, 7}};
  const AnemoiDataset dataset(test::write_anemoi(spec), {.start = "2020-01-01T12:00:00",
                                                         .end = "2020-01-03",
                                                         .frequency = "12h",
                                                         .select = {"tp", "2t"}});
  const DatasetInfo& info = dataset.info();
  REQUIRE(info.num_rows() == 5);  // stored rows 2 4 6 8 10
  REQUIRE(info.frequency_s == 43200);
  REQUIRE(info.dates_s[1] - info.dates_s[0] == 43200);
  REQUIRE(info.missing_rows == std::vector<int64_t>{1});
  REQUIRE(info.variables == std::vector<std::string>{"tp", "2t"});
  REQUIRE(info.statistics.mean[0] == test::statistic_value(4, 0));
  REQUIRE(info.tendencies.at(86400).maximum[1] == test::tendency_value(0, 3, 1));
  check_row(dataset, spec, 2, {0, 12}, {2, 4, 6, 8, 10}, {4, 0});
  std::vector<float> out(24);
  REQUIRE_THROWS_WITH(dataset.read(1, {0, 12}, out),
                      ContainsSubstring("2020-01-02T00:00:00") && ContainsSubstring("missing"));
}

TEST_CASE("constant variables follow the selection", "[anemoi_dataset]") {
  const auto store = test::write_anemoi(AnemoiSpec{});
  test::edit(*store, ".zattrs", "{\"variables\"",
             R"({"constant_fields": ["2t", "msl", "tp"], "variables")");
  const DatasetInfo info =
      AnemoiDataset(store, {.select = {"tp", "q_500", "2t", "msl"}, .drop = {"msl"}}).info();
  REQUIRE(info.constant_fields == std::vector<std::string>{"tp", "2t"});
}

TEST_CASE("an absent chunk reads as the fill value, and is told before", "[anemoi_dataset]") {
  const auto store = test::write_anemoi(AnemoiSpec{});
  REQUIRE(AnemoiDataset(store, {}).warnings().empty());
  store->erase("data/2.0.0.0");
  std::vector<float> out(60);
  const AnemoiDataset dataset(store, {});
  dataset.read(2, {0, 12}, out);
  REQUIRE(std::all_of(out.begin(), out.end(), [](float x) { return std::isnan(x); }));
  check_row(dataset, AnemoiSpec{}, 3, {0, 12}, up_to(6), up_to(5));
  REQUIRE(dataset.warnings().size() == 1);
  REQUIRE_THAT(dataset.warnings()[0],
               ContainsSubstring("fill_value NaN of 'memory/data/.zarray': 1 of 6 "
                                 "(2020-01-01T12:00:00); a run stops"));
  REQUIRE(dataset.remark(2) == "'memory/data/2.0.0.0' is missing and reads as the fill_value NaN");
  REQUIRE(dataset.remark(3).empty());
  test::edit(*store, "data/.zarray", "\"NaN\"", "7.5");
  AnemoiDataset(store, {}).read(2, {0, 12}, out);
  REQUIRE(std::all_of(out.begin(), out.end(), [](float x) { return x == 7.5F; }));
  // Nothing is said of dates that are not used, or declared missing.
  REQUIRE(AnemoiDataset(store, {.end = "2020-01-01T06"}).warnings().empty());
  test::edit(*store, ".zattrs", "\"missing_dates\": []",
             "\"missing_dates\": [\"2020-01-01T12:00:00\"]");
  REQUIRE(AnemoiDataset(store, {}).warnings().empty());
}

TEST_CASE("a chunk that goes after the dataset was opened is worth another try, and no fill value",
          "[anemoi_dataset]") {
  for (const char* key : {"data/2.0.0.0", "data/2/0/0/0"}) {
    const auto store = test::write_anemoi(AnemoiSpec{});
    if (std::string(key).find('/', 5) != std::string::npos) {
      test::edit(*store, "data/.zarray", "\"dimension_separator\": \".\"",
                 "\"dimension_separator\": \"/\"");
      for (int date = 0; date < 6; ++date) {
        const std::string flat = concat("data/", date, ".0.0.0");
        store->put(concat("data/", date, "/0/0/0"), store->values().at(flat));
        store->erase(flat);
      }
    }
    const AnemoiDataset dataset(store, {});
    REQUIRE(dataset.warnings().empty());
    store->erase(key);
    std::vector<float> out(60);
    REQUIRE_THROWS_AS(dataset.read(2, {0, 12}, out), zarr::ReadError);
    REQUIRE_THROWS_WITH(dataset.read(2, {0, 12}, out),
                        ContainsSubstring(key) && ContainsSubstring("it was there") &&
                            ContainsSubstring("2020-01-01T12:00:00"));
    check_row(dataset, AnemoiSpec{}, 3, {0, 12}, up_to(6), up_to(5));
  }
}

TEST_CASE("strict refuses absent chunks, whatever the fill value", "[anemoi_dataset]") {
  const auto store = test::write_anemoi(AnemoiSpec{});
  store->erase("data/2.0.0.0");
  std::vector<float> out(60);
  for (const char* fill : {"\"NaN\"", "7.5"}) {
    test::edit(*store, "data/.zarray", "\"NaN\"", fill);
    const AnemoiDataset strict(store, {.strict = true});
    REQUIRE_THROWS_WITH(strict.read(2, {0, 12}, out), ContainsSubstring("memory/data/2.0.0.0") &&
                                                          ContainsSubstring("missing_dates"));
    REQUIRE_NOTHROW(strict.read(3, {0, 12}, out));
    REQUIRE_THROWS_WITH(strict.warnings(), ContainsSubstring("1 of 6 dates have no chunk") &&
                                               ContainsSubstring("row 2 (2020-01-01T12:00:00)"));
  }
  const auto sound = test::write_anemoi(AnemoiSpec{});
  REQUIRE(AnemoiDataset(sound, {.strict = true}).warnings().empty());
  sound->erase("stdev/0");
  REQUIRE_THROWS_WITH(AnemoiDataset(sound, {.strict = true}), ContainsSubstring("memory/stdev/0"));
}

TEST_CASE("without a fill value nobody knows what an absent chunk holds", "[anemoi_dataset]") {
  const auto store = test::write_anemoi(AnemoiSpec{});
  store->erase("data/2.0.0.0");
  test::edit(*store, "data/.zarray", "\"NaN\"", "null");
  std::vector<float> out(60);
  const AnemoiDataset dataset(store, {});
  const auto fault = [](const std::function<void()>& act) -> std::string {
    try {
      act();
    } catch (const DataError& error) {
      return concat(error.what(), " / ", error.hint());
    }
    return "";
  };
  for (const std::string& text : {fault([&] {
                                    dataset.read(2, {0, 12}, out);
                                  }),
                                  fault([&] { (void)dataset.warnings(); })}) {
    REQUIRE_THAT(text, ContainsSubstring("fill_value in 'memory/data/.zarray' is null"));
    REQUIRE_THAT(text, ContainsSubstring("restore the chunk"));
    REQUIRE_THAT(text, !ContainsSubstring("strict") && !ContainsSubstring("allow"));
  }
  REQUIRE_NOTHROW(dataset.read(3, {0, 12}, out));
}

TEST_CASE("a row that was left out of the store is missing, its neighbours are themselves",
          "[anemoi_dataset]") {
  const AnemoiSpec spec{.num_dates = 4};
  const auto store = test::write_anemoi(spec);
  const int64_t dates[] = {0, 1, 3, 4};
  test::write_array(
      *store, "dates", {.shape = {4}, .chunks = {4}, .dtype = "<M8[s]", .fill_value = "0"},
      [&](const auto& i) { return static_cast<double>(spec.first_date_s + dates[i[0]] * 21600); });
  const AnemoiDataset dataset(store, {});
  REQUIRE(dataset.info().missing_rows == std::vector<int64_t>{2});
  check_row(dataset, spec, 3, {0, 12}, {0, 1, -1, 2, 3}, up_to(5));
}

TEST_CASE("requests that do not fit are refused", "[anemoi_dataset]") {
  const AnemoiDataset dataset(test::write_anemoi(AnemoiSpec{}), {});
  std::vector<float> out(60);
  REQUIRE_THROWS_AS(dataset.read(-1, {0, 12}, out), Error);
  REQUIRE_THROWS_AS(dataset.read(6, {0, 12}, out), Error);
  REQUIRE_THROWS_AS(dataset.read(0, {0, 13}, out), Error);
  REQUIRE_THROWS_AS(dataset.read(0, {3, 2}, out), Error);
  REQUIRE_THROWS_AS(dataset.read(0, {0, 11}, out), Error);
}

TEST_CASE("many threads read what one thread reads", "[anemoi_dataset]") {
  for (const std::vector<int64_t>& chunks : std::vector<std::vector<int64_t>>{{}, {4, 3, 1, 50}}) {
    const AnemoiSpec spec{.num_dates = 16, .num_members = 2, .num_cells = 120, .chunks = chunks};
    const AnemoiDataset dataset(test::write_anemoi(spec), {});
    std::atomic<int64_t> num_wrong = 0;
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        Pcg64 rng(t);
        std::vector<float> out(2 * 120 * 5);
        for (int k = 0; k < 100; ++k) {
          const auto row = static_cast<int64_t>(rng.next_bounded(15));
          dataset.read(row, {0, 120}, out);
          const size_t i = rng.next_bounded(static_cast<uint32_t>(out.size() - 1));
          const auto at = static_cast<int64_t>(i);
          num_wrong +=
              out[i] == test::position_value(spec, row, at % 5, at / 600, at / 5 % 120) ? 0 : 1;
        }
      });
    }
    for (std::thread& thread : threads)
      thread.join();
    REQUIRE(num_wrong == 0);
    const bool cached = !chunks.empty();
    REQUIRE((dataset.data().cache().num_hits() > 0) == cached);
  }
}

TEST_CASE("damage to any file is an error that names the store, or another value",
          "[anemoi_dataset]") {
  const auto good = test::write_anemoi({.num_dates = 2, .tendencies = {"6h"}});
  const CounterRng rng(21);
  uint64_t draw = 0;
  for (const auto& [key, original] : good->values()) {
    for (int trial = 0; trial < 60; ++trial) {
      std::string damaged = original;
      const size_t at = rng.bits(draw++) % original.size();
      if (trial % 3 == 0) {
        damaged.resize(at);
      } else {
        damaged[at] = static_cast<char>(rng.bits(draw++));
      }
      auto store = std::make_shared<zarr::MemoryStore>(*good);
      store->put(key, damaged);
      try {
        const AnemoiDataset dataset(store, {});
        const DatasetInfo& info = dataset.info();
        std::vector<float> out(
            static_cast<size_t>(info.ensemble_size * info.num_nodes() * info.num_variables()));
        for (int64_t row = 0; row < info.num_rows(); ++row)
          dataset.read(row, {0, info.num_nodes()}, out);
      } catch (const DataError& error) {
        REQUIRE_THAT(std::string(error.what()), ContainsSubstring("memory"));
      }
    }
  }
}

TEST_CASE("a folder is opened by its path, a wrong path is named", "[anemoi_dataset]") {
  const AnemoiSpec spec;
  const test::TemporaryFolder folder;
  test::write_to_folder(*test::write_anemoi(spec), folder.path() / "a.zarr");
  DatasetOptions options;
  options.dataset = (folder.path() / "a.zarr/").string();
  check_all(AnemoiDataset(options), spec);
  options.dataset = (folder.path() / "b.zarr").string();
  try {
    AnemoiDataset dataset(options);
    FAIL("opened");
  } catch (const DataError& error) {
    REQUIRE_THAT(std::string(error.what()), ContainsSubstring(options.dataset));
    REQUIRE_THAT(error.hint(), ContainsSubstring("a.zarr"));
  }
  options.dataset = folder.path().string();
  REQUIRE_THROWS_WITH(AnemoiDataset(options), ContainsSubstring("not a Zarr group"));
}

TEST_CASE("what is there but no folder is called by its kind", "[anemoi_dataset]") {
  const test::TemporaryFolder folder;
  const auto fault = [&](const std::string& name) -> std::string {
    try {
      open_store((folder.path() / name).string());
    } catch (const DataError& error) {
      return concat(error.what(), " / ", error.hint());
    }
    return "";
  };
  write_file_atomic(folder.path() / "a.zarr.zip", "PK\x03\x04...");
  REQUIRE_THAT(fault("a.zarr.zip"), ContainsSubstring("a.zarr.zip' is no zip file, or cut short"));
  REQUIRE_THAT(fault("a.zarr.zip/"), ContainsSubstring("is no zip file"));
  write_file_atomic(folder.path() / "a.nc", "\x89HDF\r\n\x1a\n...");
  REQUIRE_THAT(fault("a.nc"), ContainsSubstring("is an HDF5 or netCDF-4 file"));
  write_file_atomic(folder.path() / "a.txt", "what");
  REQUIRE_THAT(fault("a.txt"), ContainsSubstring("a.txt' is text"));
  fs::create_symlink("gone.zarr", folder.path() / "link.zarr");
  REQUIRE_THAT(fault("link.zarr"), ContainsSubstring("a link to 'gone.zarr', which is not there"));
  REQUIRE_THROWS_WITH(open_store("s3://bucket/a.zarr"), ContainsSubstring("no folder"));
}

TEST_CASE("folders that cannot be examined are errors of the data", "[anemoi_dataset]") {
  const test::TemporaryFolder folder;
  fs::create_symlink("round.zarr", folder.path() / "circle.zarr");
  fs::create_symlink("circle.zarr", folder.path() / "round.zarr");
  for (const std::string& name : {std::string("circle.zarr"), std::string(300, 'x')}) {
    const std::string path = (folder.path() / name).string();
    REQUIRE_THROWS_AS(open_store(path), DataError);
    REQUIRE_THROWS_WITH(open_store(path), ContainsSubstring("cannot examine") &&
                                              ContainsSubstring(name) &&
                                              !ContainsSubstring("filesystem error"));
  }
}
