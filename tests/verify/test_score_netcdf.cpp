// SPDX-License-Identifier: Apache-2.0
#include "verify/score_netcdf.h"

#include <cmath>

#include "data/sources/netcdf_file.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "verify/score_files.h"

using namespace aifs;
using namespace aifs::verify;

namespace {

// Two variables, the second with thresholds, and two members: the squared error says which variable
// and lead time it is of.
Verification verification() {
  const ScoredParts parts{{"t", "tp"}, {21600, 43200}, {{"global"}, {"nh"}}, {{}, {0.5, 2.0}}};
  ForecastScores forecast;
  for (size_t v = 0; v < 2; ++v) {
    for (size_t t = 0; t < 2; ++t) {
      for (size_t r = 0; r < 2; ++r) {
        FieldScores scores;
        scores.squared_error = std::pow(static_cast<double>(100 * v + 10 * t + r), 2);
        scores.ranks = {0.5, 0.25, 0.25};
        if (v == 1) scores.events = {{0.1 * static_cast<double>(t), 0, 0, 1, 0}, {0.5, 0, 0, 0, 0}};
        forecast.scores.push_back(scores);
      }
    }
  }
  forecast.scores[parts.place(1, 1, 1)].reset();
  Verification found{.parts = parts, .num_members = 2};
  found.seasons.push_back(summarise({}, parts, {forecast}, {}));
  return found;
}

}  // namespace

TEST_CASE("figures stand at their variable, lead time and region", "[score_netcdf]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "scores.nc";
  write_score_netcdf(path, verification(), score_rows(verification()));
  const data::NetcdfFile file(path.string());
  const auto* rmse = file.find("rmse");
  REQUIRE(rmse->dimensions == std::vector<std::string>{"variable", "lead_time", "region"});
  const auto values = file.read_all(*rmse);
  for (size_t v = 0; v < 2; ++v)
    for (size_t t = 0; t < 2; ++t)
      for (size_t r = 0; r < 2; ++r)
        if (v * t * r == 0)
          REQUIRE(values[(v * 2 + t) * 2 + r] == static_cast<double>(100 * v + 10 * t + r));
  REQUIRE(std::isnan(values[7]));
  REQUIRE(file.read_all(*file.find("lead_time")) == std::vector<double>{6, 12});
  REQUIRE(file.find("variable")->dimensions == std::vector<std::string>{"variable"});
}

TEST_CASE("ranks and thresholds have dimensions of their own", "[score_netcdf]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "scores.nc";
  write_score_netcdf(path, verification(), score_rows(verification()));
  const data::NetcdfFile file(path.string());
  const auto ranks = file.read_all(*file.find("rank_histogram"));
  REQUIRE(ranks.size() == 2 * 2 * 2 * 3);
  REQUIRE(ranks[0] == 0.5);
  REQUIRE(ranks[2] == 0.25);
  const auto* hits = file.find("threshold_hits");
  REQUIRE(hits->dimensions == std::vector<std::string>{"event", "lead_time", "region"});
  const auto values = file.read_all(*hits);
  REQUIRE(values[0] == 0.0);
  REQUIRE(values[2] == Approx(0.1));
  REQUIRE(values[4] == 0.5);
  REQUIRE(std::isnan(values[7]));
  REQUIRE(file.read_all(*file.find("event_threshold")) == std::vector<double>{0.5, 2.0});
}
