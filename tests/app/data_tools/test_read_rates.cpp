// SPDX-License-Identifier: Apache-2.0
#include "app/data_tools/read_rates.h"

#include <nlohmann/json.hpp>

#include "app/data_tools/page_cache.h"
#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::app;
using Json = nlohmann::ordered_json;

namespace {

constexpr int64_t kDates = 20, kCells = 5000, kBatch = 2;
// More than are read ahead: some are read while a pass is timed, however fast it is.
constexpr int64_t kBatches = 8;

// A configuration of a run with a store that it writes into `folder`.
std::string write_run(const fs::path& folder) {
  const test::AnemoiSpec spec{.num_dates = kDates, .num_cells = kCells};
  test::write_to_folder(*test::write_anemoi(spec), folder / "a.zarr");
  const Json config{{"data",
                     {{"dataset", "a.zarr"},
                      {"forcing", Json::array()},
                      {"diagnostic", Json::array()},
                      {"timestep", "6h"},
                      {"batch_size", kBatch},
                      {"prefetch_batches", 1}}}};
  write_file_atomic(folder / "run.json", config.dump());
  return (folder / "run.json").string();
}

}  // namespace

TEST_CASE("the same samples are read from disk and from memory", "[bench]") {
  const test::TemporaryFolder folder;
  const std::string file = write_run(folder.path());
  const Json results = time_reading({app::load_config(file, {}), kBatches}, [](const Json&) {});
  REQUIRE(results.size() == 3);
  REQUIRE(results[0]["case"] == "cold");
  REQUIRE(results[1]["case"] == "bare");
  REQUIRE(results[2]["case"] == "warm");
  const double bare_ms = results[1]["date_ms"].get<double>();
  REQUIRE(bare_ms ==
          Approx(results[1]["read_ms"].get<double>() + results[1]["decode_ms"].get<double>()));
  for (const Json& result : {results[0], results[2]}) {
    INFO(result.dump());
    REQUIRE(result["samples"] == kBatches * kBatch);
    REQUIRE(result["dates"] == 3 * kBatches * kBatch);
    // Three times of five fp32 variables a sample.
    const double sample_mb = 1e-6 * 3 * 5 * kCells * 4, rate = result["samples_s"].get<double>();
    REQUIRE(result["mb_s"].get<double>() == Approx(sample_mb * rate));
    REQUIRE(result["stored_mb_s"].get<double>() > 0.0);
    for (const char* share : {"busy", "resident"}) {
      REQUIRE(result[share].get<double>() >= 0.0);
      REQUIRE(result[share].get<double>() <= 1.0);
    }
  }
  REQUIRE(results[2]["share"].get<double>() ==
          Approx(bare_ms / results[2]["thread_ms"].get<double>()));
  REQUIRE(results[2]["resident"].get<double>() > 0.0);  // the first pass has just read them
}

TEST_CASE(
    "an epoch that is shorter than what was asked for is read once for each number of threads",
    "[bench]") {
  const test::TemporaryFolder folder;
  const std::string file = write_run(folder.path());
  const Json results = time_reading({.config = app::load_config(file, {}),
                                     .batches = 1000,
                                     .threads = {1, 3},
                                     .cells = 0.5,
                                     .cold = false},
                                    [](const Json&) {});
  REQUIRE(results.size() == 4);
  for (const size_t pass : {size_t{0}, size_t{2}}) {
    const Json &bare = results[pass], &warm = results[pass + 1];
    REQUIRE(bare["case"] == "bare");
    REQUIRE(warm["case"] == "warm");
    REQUIRE(bare["threads"] == (pass == 0 ? 1 : 3));
    REQUIRE(warm["threads"] == bare["threads"]);
    REQUIRE(warm["samples"] == kDates - 2);
    const double sample_mb = 1e-6 * 3 * 5 * kCells / 2 * 4;
    REQUIRE(warm["mb_s"].get<double>() == Approx(sample_mb * warm["samples_s"].get<double>()));
    REQUIRE(warm["share"].get<double>() ==
            Approx(bare["date_ms"].get<double>() / warm["thread_ms"].get<double>()));
  }
}

TEST_CASE("a later chunk that is damaged is an error of bare reading, too", "[bench]") {
  const test::TemporaryFolder folder;
  const std::string file = write_run(folder.path());
  write_file_atomic(folder.path() / "a.zarr/data/5.0.0.0", "damaged");
  for (const std::vector<int64_t>& threads : {std::vector<int64_t>{1}, std::vector<int64_t>{3}}) {
    std::vector<std::string> cases;
    REQUIRE_THROWS_WITH(
        time_reading(
            {.config = app::load_config(file, {}), .batches = 1, .threads = threads, .cold = false},
            [&](const Json& result) { cases.push_back(result["case"]); }),
        ContainsSubstring("5.0.0.0"));
    REQUIRE(cases.empty());  // the bare pass comes first
  }
}

TEST_CASE("data that are no files are read from memory alone", "[bench]") {
  const std::string demo = (test::source_folder() / "configs/demo.json").string();
  const Json results = time_reading({app::load_config(demo, {}), 3}, [](const Json&) {});
  REQUIRE(results.size() == 1);
  REQUIRE(results[0]["case"] == "warm");
  REQUIRE_FALSE(results[0].contains("share"));
}

TEST_CASE("dropping files from the page cache leaves no more of them there", "[bench]") {
  const test::TemporaryFolder folder;
  REQUIRE(resident_share(folder.path()) == 1.0);  // nothing is there as a whole
  write_file_atomic(folder.path() / "file", std::string(1 << 20, 'x'));
  const double before = resident_share(folder.path());
  REQUIRE(before > 0.0);
  drop_page_cache(folder.path());
  REQUIRE(resident_share(folder.path()) <= before);
}
