// SPDX-License-Identifier: Apache-2.0
#include "verify/score_files.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/check.h"
#include "tests/support/catch.h"
#include "verify/verification.h"

using namespace aifs;
using namespace aifs::verify;

namespace {

// Two dates of one variable at two lead times, the second without scores.
std::vector<ForecastScores> scores(double first, double second, bool with_event = false) {
  FieldScores a, b;
  a.squared_error = first, a.persistence_squared_error = 8.0, a.error = -0.5;
  b.squared_error = second, b.persistence_squared_error = 24.0, b.error = 1.5;
  for (FieldScores* one : {&a, &b}) {
    one->spread = 2.0, one->coverage = 0.75, one->climatology_squared_error = 16.0;
    one->anomaly_correlation = 0.5;
    one->ranks = {0.25, 0.25, 0.5};
    if (with_event) one->events = {{0.1, 0.2, 0.3, 0.4, 0.05}};
  }
  return {{0, {a, std::nullopt}}, {86400, {b, std::nullopt}}};
}

Verification verification(bool with_other) {
  const ScoredParts parts{{"u_500"}, {21600, 43200}, {{"global"}}};
  Verification v{.parts = parts};
  v.seasons.push_back(summarise({}, parts, scores(1.0, 7.0),
                                with_other ? scores(4.0, 28.0) : std::vector<ForecastScores>{}));
  return v;
}

// Two members, a threshold, a climatology, two seasons.
Verification everything() {
  const ScoredParts parts{{"u_500"}, {21600, 43200}, {{"global"}}, {{10.0}}};
  Verification v{.parts = parts, .num_members = 2};
  for (const char* season : {"all", "DJF"})
    v.seasons.push_back(summarise({season, true}, parts, scores(1.0, 7.0, true), {}));
  return v;
}

}  // namespace

TEST_CASE("lines and rows have the figures of what was scored", "[score_files]") {
  const std::string lines = to_json_lines(score_rows(verification(true)));
  const auto row = nlohmann::json::parse(lines);  // one line only
  REQUIRE(row["variable"] == "u_500");
  REQUIRE(row["lead_time_h"] == 6.0);
  REQUIRE(row["forecasts"] == 2);
  REQUIRE(row["rmse"] == 2.0);
  REQUIRE(row["bias"] == 0.5);
  REQUIRE(row["persistence_rmse"] == 4.0);
  REQUIRE(row["skill"].get<double>() == Approx(0.5));
  REQUIRE(row["skill_against"].get<double>() == Approx(0.5));
  REQUIRE(row["coverage"] == 0.75);
  for (const char* absent : {"spread", "season", "acc", "rank_histogram", "thresholds"})
    REQUIRE_FALSE(row.contains(absent));
  std::istringstream csv(to_csv(score_rows(verification(false))));
  std::string head, line, more;
  std::getline(csv, head);
  std::getline(csv, line);
  REQUIRE_THAT(head, ContainsSubstring("variable,lead_time_h,region,forecasts,rmse,bias"));
  REQUIRE_THAT(line, ContainsSubstring("u_500,6.0,global,2,2.0,0.5"));
  REQUIRE_FALSE(std::getline(csv, more));
}

TEST_CASE("rows have what ensembles, climatologies, thresholds and seasons add", "[score_files]") {
  const auto rows = score_rows(everything());
  REQUIRE(rows.size() == 2);
  REQUIRE(rows[0]["season"] == "all");
  REQUIRE(rows[1]["season"] == "DJF");
  const auto& row = rows[0];
  REQUIRE(row["acc"] == 0.5);
  REQUIRE(row["climatology_rmse"] == 4.0);
  REQUIRE(row["skill_against_climatology"].get<double>() == Approx(0.5));
  // Two members with a variance of 2 and a mean with a squared error of 4: sqrt(3/2 * 2 / 4).
  REQUIRE(row["spread_skill"].get<double>() == Approx(std::sqrt(0.75)));
  REQUIRE(row["rank_histogram"] == std::vector<double>{0.25, 0.25, 0.5});
  REQUIRE(row["thresholds"].size() == 1);
  const auto& event = row["thresholds"][0];
  REQUIRE(event["threshold"] == 10.0);
  REQUIRE(event["frequency_bias"].get<double>() == Approx(0.3 / 0.4));
  REQUIRE(event["brier"].get<double>() == Approx(0.05));
  REQUIRE_THAT(to_csv(rows), !ContainsSubstring("rank_histogram"));
  std::istringstream csv(thresholds_csv(rows));
  std::string head, line;
  std::getline(csv, head);
  std::getline(csv, line);
  REQUIRE(head.starts_with("variable,lead_time_h,region,season,forecasts,threshold,base_rate,"));
  REQUIRE(line.starts_with("u_500,6.0,global,all,2,10.0,0.4,"));
  REQUIRE(thresholds_csv(score_rows(verification(false))).empty());
}

TEST_CASE("the table has lead times as columns, and says where there are no scores",
          "[score_files]") {
  const std::string table = to_table(verification(true), 0);
  REQUIRE_THAT(table, ContainsSubstring("RMSE 6h") && ContainsSubstring("RMSE 12h"));
  REQUIRE_THAT(table, ContainsSubstring("global, 2 forecasts") && ContainsSubstring("50.0%") &&
                          ContainsSubstring("--"));
  REQUIRE_THAT(to_table(everything(), 0, 1), ContainsSubstring("global, DJF, 2 forecasts") &&
                                                 ContainsSubstring("acc") &&
                                                 ContainsSubstring(" 0.500"));
  REQUIRE(thresholds_table(verification(true), 0).empty());
  REQUIRE_THAT(thresholds_table(everything(), 0),
               ContainsSubstring("u_500 >= 10") && ContainsSubstring("0.75"));
}
