// SPDX-License-Identifier: Apache-2.0
#include "train/loss/loss_options.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::train;

namespace {

LossOptions read(const std::string& text) {
  LossOptions options;
  config::read(options, config::parse_json(text, "test"), "loss", {});
  return options;
}

std::string path_of_error(const std::string& text, int64_t members = 1, int64_t times_out = 1) {
  try {
    read(text).check(members, times_out);
  } catch (const ConfigError& error) {
    return error.path();
  }
  return "none";
}

}  // namespace

TEST_CASE("the loss is one term, or those that are listed", "[loss_options]") {
  const auto one = read("{}").effective_terms();
  REQUIRE(one.size() == 1);
  REQUIRE(one[0].first == "loss");
  REQUIRE(one[0].second.kind.name() == "mse");
  const auto two = read(R"({"terms": [{"kind": "mae", "weight": 2},
                             {"kind": "rmse", "scalers": ["node_weights"]}]})")
                       .effective_terms();
  REQUIRE(two.size() == 2);
  REQUIRE(two[0].second.weight == 2.0);
  REQUIRE(two[0].second.scalers.size() == 4);  // those of the section
  REQUIRE(two[1].second.scalers.size() == 1);
  REQUIRE(two[1].first == "loss.terms.1");
}

TEST_CASE("an option that a kind does not read is refused, with those that it reads",
          "[loss_options]") {
  REQUIRE(path_of_error(R"({"kind": "mse", "delta": 1})") == "loss.delta");
  REQUIRE(path_of_error(R"({"kind": "crps", "fair": true})", 2) == "loss.fair");
  REQUIRE(path_of_error(R"({"terms": [{}, {"graph": {"neighbours": 2}}]})") ==
          "loss.terms.1.graph");
  REQUIRE(path_of_error(R"({"transform": {"kind": "fft2d"}})") == "loss.transform");
  REQUIRE(path_of_error(R"({"kind": "mse", "delta": null})") == "none");
  try {
    read(R"({"kind": "crps", "huber_delta": 1})");
    FAIL("no error");
  } catch (const ConfigError& error) {
    REQUIRE_THAT(error.what(), ContainsSubstring("is an option of huber, not of crps"));
    REQUIRE_THAT(error.hint(), ContainsSubstring("the options of crps are alpha"));
  }
}

TEST_CASE("a sum of terms takes scalers over, and nothing else of a term", "[loss_options]") {
  REQUIRE(path_of_error(R"({"kind": "mae", "terms": [{}]})") == "loss.kind");
  REQUIRE(path_of_error(R"({"kind": "huber", "terms": [{}]})") == "loss.kind");
  REQUIRE(path_of_error(R"({"weight": 2, "terms": [{}]})") == "loss.weight");
  REQUIRE(path_of_error(R"({"scalers": ["node_weights"], "terms": [{}]})") == "none");
}

TEST_CASE("combinations that are not defined are found", "[loss_options]") {
  REQUIRE(path_of_error(R"({"scalers": ["time_steps"]})") == "loss.scalers");
  REQUIRE(path_of_error(R"({"scalers": ["node_wights"]})") == "loss.scalers.0");
  REQUIRE(path_of_error(R"({"kind": "crps"})") == "loss.kind");
  REQUIRE(path_of_error(R"({"kind": "crps"})", 2) == "none");
  REQUIRE(path_of_error(R"({"terms": [{}, {"kind": "graph_variogram_score"}]})") ==
          "loss.terms.1.kind");
  REQUIRE(path_of_error(R"({"time_aggregation": ["mean"]})") == "loss.time_aggregation");
  REQUIRE(path_of_error(R"({"time_aggregation": ["median"]})", 1, 2) == "loss.time_aggregation.0");
  REQUIRE(path_of_error(R"({"time_weights": [1, 2]})") == "loss.time_weights");
  REQUIRE(path_of_error(R"({"scales": {"files": ["a.npz", ""], "weights": [1]}})") ==
          "loss.scales.weights");
  REQUIRE(path_of_error(
              R"({"scales": {"files": ["a.npz", ""], "num_scales": 1, "weights": [1, 1]}})") ==
          "loss.scales.files");
  REQUIRE(path_of_error(R"({"scales": {"num_scales": 2, "weights": [1, 1]}})") ==
          "loss.scales.weights");
  REQUIRE(path_of_error(R"({"scales": {"smoothers": [{}], "weights": [1, 1]}})") == "none");
  REQUIRE(path_of_error(R"({"scales": {"smoothers": [{}], "num_scales": 1, "weights": [1, 1]}})") ==
          "loss.scales.smoothers");
  REQUIRE(path_of_error(R"({"scales": {"of_aggregates": true}})") == "loss.scales.of_aggregates");
  REQUIRE(path_of_error(R"({"variables": ["a"], "target_variables": ["a", "b"]})") ==
          "loss.target_variables");
}

TEST_CASE("neighbours of graph scores are nearest nodes or edges of the graph", "[loss_options]") {
  const auto fault = [](const std::string& graph, const char* kind = "graph_energy_score") {
    return path_of_error(concat(R"({"kind": ")", kind, R"(", "graph": )", graph, "}"), 2);
  };
  REQUIRE(fault(R"({"neighbours": 0})") == "none");
  REQUIRE(fault(R"({"neighbours": 0})", "graph_edge_crps") == "loss.graph.neighbours");
  REQUIRE(fault(R"({"of_graph": true, "edge_weight": "w"})", "graph_edge_crps") == "none");
  REQUIRE(fault(R"({"of_graph": true, "sigma": 0.1})") == "loss.graph.sigma");
  REQUIRE(fault(R"({"edge_weight": "w"})") == "loss.graph.edge_weight");
  REQUIRE(fault(R"({"source_weight": "w"})") == "loss.graph.source_weight");
}

TEST_CASE("spectral losses weigh waves, on the sphere or a rectangle", "[loss_options]") {
  REQUIRE(path_of_error(R"({"kind": "spectral_amse"})") == "loss.scalers");
  const std::string amse = R"("kind": "spectral_amse", "scalers": ["spectral"])";
  REQUIRE(path_of_error("{" + amse + "}") == "none");
  REQUIRE(path_of_error("{" + amse + R"(, "ignore_nans": true})") == "loss.ignore_nans");
  REQUIRE(path_of_error("{" + amse + R"(, "transform": {"kind": "fft2d"}})") ==
          "loss.transform.kind");
  REQUIRE(path_of_error("{" + amse + R"(, "transform": {"subgrid": [0, 4]}})") ==
          "loss.transform.subgrid");
  REQUIRE(path_of_error(R"({"kind": "fourier_correlation", "scalers": [],
                            "transform": {"kind": "fft2d", "x_dim": 4}})") ==
          "loss.transform.x_dim");
}

TEST_CASE("lists that no scaler in use reads are refused", "[loss_options]") {
  const auto fault = [](const std::string& json) {
    try {
      read(json).check(1, 2);
    } catch (const ConfigError& error) {
      return error.path();
    }
    return std::string("none");
  };
  REQUIRE(fault(R"({"masked_variables": ["q"]})") == "loss.masked_variables");
  REQUIRE(fault(R"({"masked_variables": ["q"], "scalers": ["node_weights", "variable_mask"]})") ==
          "none");
  REQUIRE(fault(R"({"masked_variables": ["q"],
                    "terms": [{}, {"scalers": ["node_weights", "variable_mask"]}]})") == "none");
  REQUIRE(fault(R"({"time_weights": [1, 2]})") == "none");
  REQUIRE(fault(R"({"time_weights": [1, 2], "scalers": ["node_weights"]})") == "loss.time_weights");
}

TEST_CASE("a parameter masks all its levels", "[loss_options]") {
  const data::VariableTable table({"q_50", "q_850", "sp"}, {});
  const auto check = [&](const std::string& masked) {
    read(R"({"scalers": ["node_weights", "variable_mask"], "masked_variables": )" + masked + "}")
        .check_names(table);
  };
  REQUIRE_NOTHROW(check(R"(["q", "sp"])"));
  REQUIRE_NOTHROW(check(R"(["q_50"])"));
  REQUIRE_THROWS_AS(check(R"(["q_500"])"), ConfigError);
}

TEST_CASE("a loss on a variable that is not predicted is found", "[loss_options]") {
  const data::VariableTable table({"t_850", "lsm"}, {.forcing = {"lsm"}, .diagnostic = {}});
  REQUIRE_NOTHROW(read(R"({"variables": ["t_850"]})").check_names(table));
  REQUIRE_THROWS_WITH(read(R"({"terms": [{"variables": ["t_500"]}]})").check_names(table),
                      ContainsSubstring("loss.terms.0.variables.0"));
  REQUIRE_THROWS_WITH(read(R"({"scalers": ["node_weights", "variable_mask"],
                               "masked_variables": ["t", "lsm"]})")
                          .check_names(table),
                      ContainsSubstring("'loss.masked_variables.1': 'lsm' is not predicted"));
  REQUIRE_THROWS_AS(read(R"({"variable_weights": {"t_850": 1}})").check_names(table), ConfigError);
}
