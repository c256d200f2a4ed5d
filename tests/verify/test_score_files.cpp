// SPDX-License-Identifier: Apache-2.0
#include "verify/score_files.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::verify;

namespace {

// Two dates of one variable at two lead times, the second without scores.
std::vector<ForecastScores> scores(double first, double second) {
  FieldScores a, b;
  a.squared_error = first, a.persistence_squared_error = 8.0, a.error = -0.5;
  b.squared_error = second, b.persistence_squared_error = 24.0, b.error = 1.5;
  return {{0, {a, std::nullopt}}, {86400, {b, std::nullopt}}};
}

Verification verification(bool with_other) {
  Verification v{.parts = {{"u_500"}, {21600, 43200}, {{"global"}}},
                 .scores = mean_scores(scores(1.0, 7.0), 2),
                 .against_persistence = skill_against_persistence(scores(1.0, 7.0), 2),
                 .against_other = {}};
  if (with_other) v.against_other = skill_against(scores(1.0, 7.0), scores(4.0, 28.0), 2);
  return v;
}

}  // namespace

TEST_CASE("lines and rows have the figures of what was scored", "[score_files]") {
  const std::string lines = to_json_lines(verification(true));
  const auto row = nlohmann::json::parse(lines);  // one line only
  REQUIRE(row["variable"] == "u_500");
  REQUIRE(row["lead_time_h"] == 6.0);
  REQUIRE(row["forecasts"] == 2);
  REQUIRE(row["rmse"] == 2.0);
  REQUIRE(row["bias"] == 0.5);
  REQUIRE(row["persistence_rmse"] == 4.0);
  REQUIRE(row["skill"].get<double>() == Approx(0.5));
  REQUIRE(row["skill_against"].get<double>() == Approx(0.5));
  REQUIRE_FALSE(row.contains("spread"));
  std::istringstream csv(to_csv(verification(false)));
  std::string head, line, more;
  std::getline(csv, head);
  std::getline(csv, line);
  REQUIRE_THAT(head, ContainsSubstring("variable,lead_time_h,region,forecasts,rmse,bias"));
  REQUIRE_THAT(line, ContainsSubstring("u_500,6.0,global,2,2.0,0.5"));
  REQUIRE_FALSE(std::getline(csv, more));
}

TEST_CASE("the table has lead times as columns, and says where there are no scores",
          "[score_files]") {
  const std::string table = to_table(verification(true), 0);
  REQUIRE_THAT(table, ContainsSubstring("RMSE 6h") && ContainsSubstring("RMSE 12h"));
  REQUIRE_THAT(table, ContainsSubstring("global, 2 forecasts") && ContainsSubstring("50.0%") &&
                          ContainsSubstring("--"));
}

TEST_CASE("forecasts of other dates cannot be compared", "[score_files]") {
  std::vector<ForecastScores> other = scores(1.0, 1.0);
  other[0].start_s = 1, other[1].start_s = 2;
  REQUIRE_THROWS_WITH(skill_against(scores(1.0, 7.0), other, 2),
                      ContainsSubstring("no start date in common"));
}
