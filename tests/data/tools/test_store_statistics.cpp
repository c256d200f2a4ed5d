// SPDX-License-Identifier: Apache-2.0
#include "data/tools/store_statistics.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_io.h"
#include "core/time.h"
#include "data/sources/anemoi_dataset.h"
#include "data/tools/synth.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::data;

namespace {

SynthOptions small(int format) {
  SynthOptions options;
  for (int n = 0; n < 30; ++n) {
    options.latitudes_deg.push_back(80.0 - 5.0 * n);
    options.longitudes_deg.push_back(9.0 * n);
  }
  options.num_variables = 3;
  options.num_dates = 40;
  options.values = SynthValues::kWaves;
  options.format = format;
  return options;
}

DatasetInfo info_of(const fs::path& folder) {
  DatasetOptions options;
  options.dataset = folder.string();
  return AnemoiDataset(options).info();
}

}  // namespace

TEST_CASE("statistics of a period and tendencies are written into a store and read again",
          "[data]") {
  const test::TemporaryFolder folder;
  for (const int format : {2, 3}) {
    const fs::path place = folder.path() / std::to_string(format);
    write_synthetic(place.string(), small(format), nullptr);
    const DatasetInfo before = info_of(place);
    StatisticsOptions options{.start = "2020-01-02", .end = "2020-01-06", .threads = 2};
    options.deltas_s = {21600, 86400};
    const StoreStatistics result =
        compute_store_statistics(open_store(place.string()), options, nullptr);
    CHECK(format_date(result.first_s) == "2020-01-02T00:00:00");
    CHECK(format_date(result.last_s) == "2020-01-06T18:00:00");
    CHECK(result.computed.mean != before.statistics.mean);
    CHECK(largest_difference(result.variables, result.computed, before.statistics)->largest > 1e-6);
    write_statistics(place.string(), result);
    const DatasetInfo after = info_of(place);
    CAPTURE(format);
    CHECK(after.statistics.mean == result.computed.mean);
    CHECK(after.statistics.stdev == result.computed.stdev);
    CHECK(after.statistics.minimum == result.computed.minimum);
    REQUIRE(after.tendencies.size() == 2);
    CHECK(after.tendencies.at(86400).maximum == result.tendencies.at(86400).maximum);
    CHECK(path_exists(place / "statistics_tendencies_1d_mean"));  // Anemoi's name for 24 hours
    // From now on this is the period of the store.
    const StoreStatistics again = compute_store_statistics(open_store(place.string()), {}, nullptr);
    CHECK(again.first_s == result.first_s);
    CHECK(largest_difference(again.variables, again.computed, again.stored)->largest == 0.0);
    CHECK(again.tendencies.size() == 2);
    for (const auto& entry : fs::directory_iterator(place))
      CHECK(entry.path().filename().string().find('-') == std::string::npos);  // nothing left over
  }
}

TEST_CASE("a store that has no statistics gets some", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path place = folder.path() / "a";
  write_synthetic(place.string(), small(2), nullptr);
  const DatasetInfo before = info_of(place);
  for (const char* name : {"mean", "stdev", "minimum", "maximum"})
    fs::remove_all(place / name);
  CHECK_THROWS_AS(info_of(place), DataError);
  const StoreStatistics result = compute_store_statistics(open_store(place.string()), {}, nullptr);
  CHECK_FALSE(largest_difference(result.variables, result.computed, result.stored));
  write_statistics(place.string(), result);
  CHECK(info_of(place).statistics.mean == before.statistics.mean);
}

TEST_CASE("periods and times that the store has not are refused", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path place = folder.path() / "a";
  write_synthetic(place.string(), small(2), nullptr);
  const auto compute = [&](const StatisticsOptions& options) {
    return compute_store_statistics(open_store(place.string()), options, nullptr);
  };
  CHECK_THROWS_AS(compute({.start = "2031"}), ConfigError);
  CHECK_THROWS_AS(compute({.deltas_s = {{3600}}}), ConfigError);
  CHECK_THROWS_AS(compute({.deltas_s = {{0}}}), ConfigError);
}

// The reference's own figures: to the precision of fp64 sums.
TEST_CASE("statistics are those that anemoi-datasets has stored", "[data][reference]") {
  const auto shared = test::shared_folder();
  if (!shared) return;
  const test::TemporaryFolder folder;
  for (const char* name : {"speedy", "winds"}) {
    const std::string tar = (*shared / "datasets" / concat(name, ".tar")).string();
    REQUIRE(test::run_command(concat("tar -xf '", tar, "' -C '", folder.path().string(), "'"))
                .exit_code == 0);
  }
  for (const char* name : {"speedy", "winds", "coads"}) {
    const auto store = open_store((folder.path() / concat(name, ".zarr")).string());
    const StoreStatistics result = compute_store_statistics(store, {}, nullptr);
    CAPTURE(name);
    const auto difference = largest_difference(result.variables, result.computed, result.stored);
    REQUIRE(difference);
    CAPTURE(difference->where);
    CHECK(difference->largest < 1e-10);
    CHECK(result.tendencies.size() == result.stored_tendencies.size());
    for (const auto& [delta_s, statistics] : result.tendencies) {
      const auto of_tendency =
          largest_difference(result.variables, statistics, result.stored_tendencies.at(delta_s));
      CAPTURE(delta_s, of_tendency->where);
      CHECK(of_tendency->largest < 1e-10);
    }
  }
}
