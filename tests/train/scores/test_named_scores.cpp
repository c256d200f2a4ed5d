// SPDX-License-Identifier: Apache-2.0
#include "train/scores/named_scores.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

using namespace aifs;
using Json = nlohmann::ordered_json;
using namespace aifs::train;

namespace {

const char* const kOne = R"({"step": 7, "epoch": 1, "loss": 0.5, "rollout": 1, "num_dates": 3,
  "lead_times": {"6h": {"num_dates": 3, "mean_ratio": 0.25, "constant": ["t"],
    "rmse": {"z_500": 1.5, "t": 2}, "skill": {"z_500": null, "t": 0.1},
    "weight_nh": 0.5, "mean_ratio_nh": 0.75, "rmse_nh": {"z_500": 3, "t": 4},
    "bias_nh": {"z_500": -1, "t": -2}}}})";

std::vector<std::string> names_of(const Json& validation) {
  std::vector<std::string> names;
  for (const NamedScore& score : named_scores(validation))
    names.push_back(score.name);
  return names;
}

}  // namespace

TEST_CASE("a score is named by figure, region, variable and lead time", "[named_scores]") {
  const Json one = Json::parse(kOne);
  REQUIRE(names_of(one) == std::vector<std::string>{"loss", "mean_ratio_6h", "rmse_z_500_6h",
                                                    "rmse_t_6h", "skill_z_500_6h", "skill_t_6h",
                                                    "mean_ratio_nh_6h", "rmse_nh_z_500_6h",
                                                    "rmse_nh_t_6h", "bias_nh_z_500_6h",
                                                    "bias_nh_t_6h"});
  REQUIRE(score_called("loss", one) == 0.5);
  REQUIRE(score_called("rmse_nh_t_6h", one) == 4.0);
  REQUIRE(std::isnan(score_called("skill_z_500_6h", one)));
  REQUIRE(std::isnan(score_called("rmse_u_6h", one)));
}

TEST_CASE("scores of several datasets have their names in front", "[named_scores]") {
  Json several{{"loss", 1.0}};
  several["datasets"]["a"]["lead_times"] = Json::parse(kOne)["lead_times"];
  several["datasets"]["b"]["lead_times"]["12h"]["mean_ratio"] = 0.5;
  REQUIRE(score_called("a/rmse_z_500_6h", several) == 1.5);
  REQUIRE(score_called("b/mean_ratio_12h", several) == 0.5);
}

TEST_CASE("objects of another shape have no scores", "[named_scores]") {
  for (const char* text : {"null", "[]", "3", "{}", R"({"loss": "x", "lead_times": 3})",
                           R"({"lead_times": {"6h": 1, "x": {"rmse": [1], "y": {"z": "w"}}}})",
                           R"({"datasets": [1], "lead_times": {}})", R"({"datasets": {"a": 1}})"}) {
    INFO(text);
    REQUIRE(named_scores(Json::parse(text)).empty());
  }
}

TEST_CASE("rows have a region and a variable each", "[named_scores]") {
  const std::vector<Json> rows = score_rows(Json::parse(kOne));
  REQUIRE(rows.size() == 4);
  const Json first = {{"step", 7},           {"epoch", 1},         {"dataset", ""},
                      {"variable", "z_500"}, {"lead_time_h", 6.0}, {"region", "global"},
                      {"dates", 3},          {"rmse", 1.5},        {"skill", nullptr}};
  REQUIRE(rows[0] == first);
  REQUIRE(rows[3]["region"] == "nh");
  REQUIRE(rows[3]["variable"] == "t");
  REQUIRE(rows[3]["bias"] == -2);
  const std::vector<std::string> columns = score_columns();
  for (const auto& [key, value] : rows[3].items())
    REQUIRE(std::count(columns.begin(), columns.end(), key) == 1);
}
