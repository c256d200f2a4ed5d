// SPDX-License-Identifier: Apache-2.0
#include "data/tools/synth.h"

#include <set>

#include "core/check.h"
#include "core/file_io.h"
#include "data/sources/anemoi_dataset.h"
#include "data/tools/position_values.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::data;

namespace {

SynthOptions small() {
  SynthOptions options;
  for (int n = 0; n < 25; ++n) {
    options.latitudes_deg.push_back(80.0 - 5.0 * n);
    options.longitudes_deg.push_back(9.0 * n);
  }
  options.num_variables = 4;
  options.num_dates = 7;
  return options;
}

}  // namespace

TEST_CASE("a reader finds at each place of a synthetic store what the place says", "[data]") {
  const test::TemporaryFolder folder;
  for (const int format : {2, 3}) {
    for (const int64_t shard_dates : {0, 6}) {
      if (format == 2 && shard_dates > 0) continue;
      SynthOptions options = small();
      options.format = format;
      options.members = 2;
      options.dates = 3;
      options.cell_chunks = 2;
      options.shard_dates = shard_dates;
      options.threads = 2;
      const fs::path place = folder.path() / concat("s", format, shard_dates);
      write_synthetic(place.string(), options, nullptr);
      DatasetOptions reading;
      reading.dataset = place.string();
      reading.strict = true;
      const AnemoiDataset dataset(reading);
      const DatasetInfo& info = dataset.info();
      CHECK(info.num_rows() == 7);
      CHECK(info.variables == usual_variables(4));
      CHECK(info.latitudes_deg == options.latitudes_deg);
      std::vector<float> row(2 * 25 * 4);
      bool all_right = true;
      for (int64_t t = 0; t < 7; ++t) {
        dataset.read(t, {0, 25}, row);
        size_t at = 0;
        for (int64_t e = 0; e < 2; ++e)
          for (int64_t n = 0; n < 25; ++n)
            for (int64_t v = 0; v < 4; ++v)
              all_right =
                  all_right && row[at++] == static_cast<float>(((t * 4 + v) * 2 + e) * 25 + n);
      }
      CHECK(all_right);
      CHECK(info.statistics.minimum[0] == 0.0);
      CHECK(info.statistics.maximum[3] == 7 * 4 * 2 * 25 - 1);
      CHECK(info.tendencies.at(21600).mean[0] == 4 * 2 * 25);
      CHECK(info.tendencies.at(21600).stdev[0] == 0.0);
    }
  }
}

TEST_CASE("positions of neighbours differ where they are beyond what a float counts", "[data]") {
  const int64_t far = 5'600'000'000;
  std::set<float> seen;
  for (int64_t item = far; item < far + 100000; ++item)
    seen.insert(position_value(item));
  CHECK(seen.size() == 100000);
  CHECK(static_cast<int64_t>(position_value(kPositionModulus - 1)) == kPositionModulus - 1);
}

TEST_CASE("waves are the same at every call and differ by date, variable and member", "[data]") {
  SynthOptions options = small();
  options.values = SynthValues::kWaves;
  const auto field = [&](int64_t date, int64_t variable, int64_t member) {
    std::vector<float> out(25);
    synthetic_field(options, date, variable, member, out);
    return out;
  };
  CHECK(field(3, 1, 0) == field(3, 1, 0));
  CHECK(field(3, 1, 0) != field(4, 1, 0));
  CHECK(field(3, 1, 0) != field(3, 2, 0));
  CHECK(field(3, 1, 0) != field(3, 1, 1));
}

TEST_CASE("nothing is overwritten", "[data]") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "x", "");
  CHECK_THROWS_AS(write_synthetic(folder.path().string(), small(), nullptr), ConfigError);
  CHECK_THROWS_AS(write_synthetic((folder.path() / "x").string(), small(), nullptr), ConfigError);
  SynthOptions options = small();
  options.shard_dates = 4;  // in format 2
  CHECK_THROWS_AS(write_synthetic((folder.path() / "y").string(), options, nullptr), ConfigError);
  CHECK_FALSE(path_exists(folder.path() / "y"));
}
