// SPDX-License-Identifier: Apache-2.0
#include "train/scores.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::train;

namespace {

// Prognostic variables a and b; half the error of persistence, a quarter inside.
ValidationResult result() {
  LeadTimeScores scores{6 * 3600, 3, {1.0, 2.0}, {2.0, 4.0}};
  scores.regions = {{"inside_lam", 0.25, {0.5, 1.0}, {2.0, 4.0}},
                    {"outside_lam", 0.75, {1.5, 3.0}, {2.0, 4.0}}};
  ValidationResult result;
  result.num_dates = result.loss_dates = 3;
  result.lead_times = {scores};
  return result;
}

const data::VariableTable kVariables({"a", "b"}, {});

}  // namespace

TEST_CASE("scores of regions stand beside those of the whole, by name", "[scores]") {
  const auto json = to_json(result(), kVariables)["lead_times"]["6h"];
  REQUIRE(json["mean_ratio"] == 0.5);
  REQUIRE(json["mean_ratio_inside_lam"] == 0.25);
  REQUIRE(json["mean_ratio_outside_lam"] == 0.75);
  REQUIRE(json["weight_inside_lam"] == 0.25);
  REQUIRE(json["rmse_inside_lam"]["b"] == 1.0);
  REQUIRE(json["persistence_rmse_outside_lam"]["a"] == 2.0);
  ValidationResult whole = result();
  whole.lead_times[0].regions.clear();
  REQUIRE_FALSE(to_json(whole, kVariables)["lead_times"]["6h"].contains("rmse_inside_lam"));
}

TEST_CASE("figures of each variable stand beside each other, skill among them", "[scores]") {
  ValidationResult scored = result();
  LeadTimeScores& scores = scored.lead_times[0];
  scores.bias = {-1.0, 0.5};
  scores.mae = {1.5, 2.5};
  scores.activity = {3.0, 4.0};
  scores.truth_activity = {5.0, 6.0};
  scores.persistence_rmse[1] = 0.0;
  const auto json = to_json(scored, kVariables)["lead_times"]["6h"];
  REQUIRE(json["bias"]["a"] == -1.0);
  REQUIRE(json["mae"]["b"] == 2.5);
  REQUIRE(json["activity"]["a"] == 3.0);
  REQUIRE(json["truth_activity"]["b"] == 6.0);
  REQUIRE(json["skill"]["a"] == 0.5);
  REQUIRE(std::isnan(json["skill"]["b"].get<double>()));
  REQUIRE(json["skill_inside_lam"]["b"] == 0.75);
}

TEST_CASE("tables of regions follow that of the whole", "[scores]") {
  const std::string table = to_table(result(), kVariables);
  const size_t whole = table.find("50.0%"), inside = table.find("inside_lam, 25% of the weight"),
               outside = table.find("outside_lam, 75% of the weight");
  REQUIRE(whole < inside);
  REQUIRE(inside < table.find("75.0%"));
  REQUIRE(table.find("75.0%") < outside);
  REQUIRE(outside < table.find("25.0%"));
  REQUIRE(table.find("25.0%") != std::string::npos);
}
