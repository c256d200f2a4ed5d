// SPDX-License-Identifier: Apache-2.0
#include "train/loss/loss_setup.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"
#include "train/loss/tendency_scalers.h"
#include "train/loss/time_scaler.h"

using namespace aifs;
using namespace aifs::train;

namespace {

// Forcing f, prognostic t_500 and u_850, diagnostic tp; three cells.
graph::NodeSet three_nodes() {
  graph::NodeSet nodes;
  nodes.name = "data";
  nodes.lat_rad = {0.1f, 0.2f, 0.3f};
  nodes.lon_rad = {0.0f, 1.0f, 2.0f};
  nodes.attributes["area_weight"] = {1, {1.0f, 2.0f, 5.0f}};
  return nodes;
}

// Forcing f, prognostic t_500 and u_850, diagnostic tp; three cells.
struct Setup {
  data::VariableTable variables{{"f", "t_500", "tp", "u_850"}, {{"f"}, {"tp"}}};
  data::Statistics statistics{{0, 0, 0, 0}, {1, 6, 1, 8}, {0, 0, 0, 0}, {1, 1, 1, 1}};
  std::map<int64_t, data::Statistics> tendencies{
      {21600, {{0, 0, 0, 0}, {1, 2, 1, 4}, {0, 0, 0, 0}, {1, 1, 1, 1}}}};
  graph::NodeSet nodes = three_nodes();

  LossPtr build(const std::vector<std::string>& scalers, LossOptions options = {}) const {
    options.scalers = scalers;
    return build_loss(options, {.variables = variables,
                                .statistics = statistics,
                                .tendencies = tendencies,
                                .nodes = nodes,
                                .timestep_s = 21600,
                                .times_out = 2,
                                .dtype = at::kDouble});
  }
  LossInputs inputs() const {
    return {.variables = variables,
            .statistics = statistics,
            .tendencies = tendencies,
            .nodes = nodes,
            .timestep_s = 21600,
            .times_out = 2,
            .dtype = at::kDouble};
  }
};

LossOptions read(const std::string& text) {
  LossOptions options;
  config::read(options, config::parse_json(text, "test"), "loss", {});
  return options;
}

// The loss of errors 1 at one point only is the product of its weights.
double weight_at(const Loss& loss, int64_t time, int64_t node, int64_t variable,
                 LossCall call = {}) {
  at::Tensor prediction = at::zeros({1, 2, 1, 3, 3}, at::kDouble);
  prediction[0][time][0][node][variable] = 1.0;
  call.over_variables = OverVariables::kSum;
  return loss(prediction, at::zeros_like(prediction), call).item<double>();
}

std::vector<double> values(const Scaler& scaler) {
  const at::Tensor flat = scaler.factor.to(at::kDouble).flatten();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

}  // namespace

TEST_CASE("scalers act on their axes, whatever their order", "[loss_setup]") {
  const LossOptions options = read(R"({"time_weights": [1, 3]})");
  const std::vector<std::string> names{"time_steps", "node_weights", "general_variable"};
  const LossPtr loss = Setup().build(names, options);
  const double first = weight_at(*loss, 0, 0, 0);
  REQUIRE(weight_at(*loss, 1, 0, 0) == Approx(3.0 * first));
  REQUIRE(weight_at(*loss, 0, 2, 0) == Approx(5.0 * first));
  REQUIRE(weight_at(*loss, 0, 0, 2) == Approx(0.8 / 6.0 * first));
  const LossPtr turned = Setup().build({names[2], names[1], names[0]}, options);
  REQUIRE(weight_at(*turned, 1, 2, 2) == Approx(weight_at(*loss, 1, 2, 2)).epsilon(1e-14));
  REQUIRE(weight_at(*loss, 1, 2, 2, without("time_steps")) ==
          Approx(weight_at(*loss, 0, 2, 2, without(kTime))));
}

TEST_CASE("weights follow areas, parameters and tendencies", "[loss_setup]") {
  const auto weight = [](const std::string& scaler, int64_t node, int64_t variable) {
    return weight_at(*Setup().build({"node_weights", scaler}), 0, node, variable) /
           weight_at(*Setup().build({"node_weights"}), 0, node, variable);
  };
  REQUIRE(weight_at(*Setup().build({"node_weights"}), 0, 2, 0) == Approx(5.0 / 8.0));
  const std::vector<double> by_parameter{6.0, 0.025, 0.8};  // t_500, tp, u_850
  const std::vector<double> by_tendency{3.0, 1.0, 2.0};
  for (int64_t v = 0; v < 3; ++v) {
    const auto i = static_cast<size_t>(v);
    REQUIRE(weight("general_variable", 1, v) == Approx(by_parameter[i]));
    REQUIRE(weight("stdev_tendency", 1, v) == Approx(by_tendency[i]));
    REQUIRE(weight("var_tendency", 1, v) == Approx(by_tendency[i] * by_tendency[i]));
  }
}

TEST_CASE("tendency statistics that are not there are an error that lists those that are",
          "[loss_setup]") {
  const LossOptions options = read(R"({"tendency": {"timestep": "12h"}})");
  try {
    Setup().build({"node_weights", "stdev_tendency"}, options);
    FAIL("no error");
  } catch (const DataError& error) {
    REQUIRE_THAT(error.what(), ContainsSubstring("12h"));
    REQUIRE_THAT(error.hint(), ContainsSubstring("6h"));
  }
  Setup none;
  none.tendencies.clear();
  REQUIRE_THROWS_AS(none.build({"node_weights", "var_tendency"}), DataError);
}

TEST_CASE("the NaN mask weighs imputed outputs with 0 where the loss asks for it", "[loss_setup]") {
  const Setup setup;
  at::Tensor mask = at::zeros({1, 3, 4}, at::kByte);
  mask[0][1][1] = 1;  // t_500 of cell 1
  mask[0][2][0] = 1;  // f is no output
  const Scaler scaler = nan_mask_scaler(mask, setup.variables, at::kFloat);
  REQUIRE(scaler.factor.sizes() == at::IntArrayRef({1, 1, 1, 3, 3}));
  REQUIRE(values(scaler) == std::vector<double>{1, 1, 1, 0, 1, 1, 1, 1, 1});
  const at::Tensor like = at::zeros({1}, at::kDouble);
  const LossCall call = call_of_batch({}, mask, setup.variables, like);
  const LossPtr masked = setup.build({"node_weights", "nan_mask_weights", "time_steps"});
  const LossPtr plain = setup.build({"node_weights", "time_steps"});
  REQUIRE(weight_at(*masked, 0, 1, 0, call) == 0.0);
  REQUIRE(weight_at(*masked, 0, 2, 0, call) == weight_at(*plain, 0, 2, 0));
  REQUIRE(weight_at(*plain, 0, 1, 0, call) > 0.0);  // only a loss that asks for it is masked
  REQUIRE(weight_at(*masked, 0, 1, 0, call_of_batch({}, {}, setup.variables, like)) > 0.0);
}

TEST_CASE("named scalers have settings and a normalisation of their own", "[loss_setup]") {
  Setup setup;
  setup.nodes.attributes["cutout"] = {1, {0.0f, 1.0f, 0.0f}};
  const LossOptions options = read(R"({"scalers": [], "named_scalers": {
      "outside": {"kind": "node_weights", "node_attribute": "cutout", "node_inverse": true},
      "means": {"kind": "general_variable", "norm": "unit-mean",
                "variable_weights": {"t": 1, "u": 2, "tp": 6}},
      "times": {"kind": "time_steps", "time_weights": [1, 3]},
      "later": {"kind": "lead_time_decay", "lead_time": {"hours": [0, 12]}},
      "waves": {"kind": "spectral", "modes": 4, "repeats": 2},
      "own": {"kind": "values", "axes": ["time", "grid"], "shape": [2, 1], "values": [0.1, 7]}}})");
  const auto scaler = [&](const std::string& name) {
    return build_scaler(options, name, setup.inputs());
  };
  REQUIRE(values(scaler("outside")) == std::vector<double>{1.0, 0.0, 1.0});
  REQUIRE(values(scaler("means"))[1] == 2.0);  // tp
  REQUIRE(values(scaler("times")) == std::vector<double>{1.0, 3.0});
  REQUIRE(values(scaler("later"))[0] == Approx(2.0 / 3.0));  // 1 and 1/2, over their sum
  REQUIRE(values(scaler("waves")) == std::vector<double>(8, 0.25));
  REQUIRE(values(scaler("own")) == std::vector<double>{0.1, 7.0});
  REQUIRE(scaler("own").factor.sizes() == at::IntArrayRef({1, 2, 1, 1, 1}));
  REQUIRE(values(scaler("time_steps")) == std::vector<double>{0.5, 0.5});  // that of the section
}

TEST_CASE("listed values are as many as what they weigh", "[loss_setup]") {
  const Setup setup;
  const auto fault = [&](const std::string& values) {
    const LossOptions options = read(R"({"scalers": ["own", "node_weights"],
        "named_scalers": {"own": {"kind": "values", )" +
                                     values + "}}}");
    try {
      build_loss(options, setup.inputs());
    } catch (const ConfigError& error) {
      REQUIRE(error.path() == "loss.named_scalers.own.values");
      return std::string(error.what());
    }
    return std::string("none");
  };
  REQUIRE_THAT(fault(R"("axes": ["grid"], "values": [1, 2])"),
               ContainsSubstring("are 2 along 'grid', which has 3"));
  REQUIRE_THAT(fault(R"("axes": ["variable"], "values": [1, 2])"),
               ContainsSubstring("are 2 along 'variable', which has 3"));
  REQUIRE_THAT(fault(R"("axes": ["time", "grid"], "shape": [3, 1], "values": [1, 2, 3])"),
               ContainsSubstring("are 3 along 'time', which has 2"));
  for (const char* fitting :
       {R"("axes": ["grid"], "values": [1, 2, 3])", R"("axes": ["variable"], "values": [7])",
        R"("axes": ["batch"], "values": [1, 2, 3, 4])"})
    REQUIRE(fault(fitting) == "none");
}

TEST_CASE("a mask of nodes that marks none is an error of the configuration", "[loss_setup]") {
  Setup setup;
  setup.nodes.attributes["cutout"] = {1, {0.0f, 0.0f, 0.0f}};
  const LossOptions options = read(R"({"scalers": [], "named_scalers": {
      "inside": {"kind": "node_weights", "node_mask": "cutout"}}})");
  try {
    build_scaler(options, "inside", setup.inputs());
    FAIL("an empty mask is taken");
  } catch (const ConfigError& error) {
    REQUIRE(error.path() == "loss.named_scalers.inside.node_mask");
  }
}

TEST_CASE("cells that the network does not decide weigh nothing, before norm and share",
          "[loss_setup]") {
  Setup setup;  // weights 1, 2, 5
  setup.nodes.attributes["last"] = {1, {0.0f, 0.0f, 1.0f}};
  setup.nodes.attributes["ends"] = {1, {1.0f, 0.0f, 1.0f}};
  LossInputs inputs = setup.inputs();
  inputs.output_mask = at::tensor({0, 1, 1}, at::kByte).to(at::kBool);
  const auto weights = [&](const char* scaler) {
    const LossOptions options = read(concat(R"({"scalers": [], "named_scalers": {"own": {)",
                                            R"("kind": "node_weights", )", scaler, "}}}"));
    return values(build_scaler(options, "own", inputs));
  };
  REQUIRE(weights(R"("norm": "none")") == std::vector{0.0, 2.0, 5.0});
  const std::vector<double> shares = weights(R"("norm": "unit-sum")");
  REQUIRE(shares[0] == 0.0);
  REQUIRE(shares[1] == Approx(2.0 / 7.0).epsilon(1e-7));
  REQUIRE(weights(R"("node_inverse": true)") == std::vector{0.0, 0.0, 0.0});
  // The share is one of the cells that count, here the last two.
  for (const char* mask : {"last", "ends"}) {
    const std::vector<double> reweighted =
        weights(concat(R"("norm": "unit-sum", "node_mask_share": 0.25, "node_mask": ")", mask, "\"")
                    .c_str());
    REQUIRE(reweighted[0] == 0.0);
    REQUIRE(reweighted[1] == Approx(0.75).epsilon(1e-6));
    REQUIRE(reweighted[2] == Approx(0.25).epsilon(1e-6));
  }
  setup.nodes.attributes["both"] = {1, {0.0f, 1.0f, 1.0f}};
  REQUIRE_THROWS_WITH(weights(R"("node_mask": "both")"), ContainsSubstring("weigh nothing"));
}

TEST_CASE("losses that would count cells outside the output mask are refused", "[loss_setup]") {
  Setup setup;
  LossInputs inputs = setup.inputs();
  inputs.output_mask = at::tensor({0, 1, 1}, at::kByte).to(at::kBool);
  const auto fault = [&](const std::string& loss) {
    for (const bool builds : {false, true}) {
      try {
        if (builds)
          build_loss(read(loss), inputs);
        else
          check_loss(read(loss), inputs);
      } catch (const ConfigError& error) {
        return error.path();
      }
    }
    return std::string("none");
  };
  REQUIRE(fault(R"({"scalers": ["node_weights"]})") == "none");
  REQUIRE(fault(R"({"scalers": []})") == "loss.scalers");
  REQUIRE(fault(R"({"scalers": [], "terms": [{"kind": "mae"}]})") == "loss.terms.0.scalers");
  // Weights of one's own over the grid are not masked.
  REQUIRE(fault(R"({"scalers": ["own"], "named_scalers": {
      "own": {"kind": "values", "axes": ["grid"], "values": [1, 2, 3]}}})") == "loss.scalers");
  REQUIRE(fault(R"({"scalers": ["own", "inner"], "named_scalers": {
      "own": {"kind": "values", "axes": ["grid"], "values": [1, 2, 3]},
      "inner": {"kind": "node_weights"}}})") == "none");
}

TEST_CASE("graph scores use the edges of the graph if they are told to", "[loss_setup]") {
  Setup setup;
  graph::EdgeSet ring{"data", "data", {1, 2, 0}, {0, 1, 2}, {}};
  ring.attributes["weight"] = {1, {1.0f, 2.0f, 3.0f}};
  LossInputs inputs = setup.inputs();
  inputs.edges = &ring;
  std::vector<SparseRowsPtr> seen;
  inputs.matrix_used = [&](const SparseRowsPtr& matrix) { return seen.emplace_back(matrix); };
  const std::string score = R"("kind": "graph_energy_score", "scalers": [])";
  const auto of_graph = [&](const std::string& graph) {
    return read("{" + score + R"(, "graph": )" + graph + "}");
  };
  build_loss(of_graph(R"({"of_graph": true, "edge_weight": "weight", "row_normalise": false})"),
             inputs);
  REQUIRE(seen.size() == 1);
  REQUIRE(seen[0]->values().sum().item<double>() == 6.0);
  build_loss(of_graph(R"({"neighbours": 0})"), inputs);
  REQUIRE(seen.size() == 1);  // every node by itself
  const LossOptions unknown = of_graph(R"({"of_graph": true, "edge_weight": "wieght"})");
  REQUIRE_THROWS_WITH(build_loss(unknown, inputs), ContainsSubstring("wieght"));
  inputs.edges = nullptr;
  REQUIRE_THROWS_AS(build_loss(unknown, inputs), ConfigError);
}

TEST_CASE("targets may have columns that are not predicted", "[loss_setup]") {
  const Setup setup;
  LossInputs inputs = setup.inputs();
  const LossOptions options =
      read(R"({"scalers": [], "variables": ["tp"], "target_variables": ["f"]})");
  REQUIRE_THROWS_AS(build_loss(options, inputs), ConfigError);
  inputs.target_names = setup.variables.names();
  at::Tensor target = at::zeros({1, 2, 1, 3, 4}, at::kDouble);
  target.select(4, 0).fill_(2.0);  // f
  const at::Tensor prediction = at::zeros({1, 2, 1, 3, 3}, at::kDouble);
  REQUIRE((*build_loss(options, inputs))(prediction, target).item<double>() == 24.0);
  const LossOptions all = read(R"({"scalers": []})");
  REQUIRE((*build_loss(all, inputs))(prediction, target).item<double>() == 0.0);
}

TEST_CASE("scales of aggregates are not aggregates of scales", "[loss_setup]") {
  const Setup setup;
  const auto value = [&](bool of_aggregates) {
    LossOptions options = read(R"({"scalers": [], "time_aggregation": ["max"], "scales": {
        "smoothers": [{"neighbours": 3, "sigma": 1e6}], "weights": [1, 0]}})");
    options.scales.of_aggregates = of_aggregates;
    at::Tensor prediction = at::zeros({1, 2, 1, 3, 3}, at::kDouble);
    prediction[0][0][0][0][0] = 3.0;  // one node at each time
    prediction[0][1][0][1][0] = 3.0;
    const LossPtr loss = build_loss(options, setup.inputs());
    return (*loss)(prediction, at::zeros_like(prediction)).item<double>();
  };
  // Means over all three nodes: 1 at both times, but 2 of the largest of both times.
  REQUIRE(value(false) == Approx(1.0).epsilon(1e-6));
  REQUIRE(value(true) == Approx(4.0).epsilon(1e-6));
}

TEST_CASE("options that cannot make a loss name their path", "[loss_setup]") {
  const auto fault = [](LossOptions options) {
    try {
      options.validate("loss");
    } catch (const ConfigError& error) {
      return error.path();
    }
    return std::string("none");
  };
  LossOptions options;
  REQUIRE(fault(options) == "none");
  options.scalers = {"time_steps"};
  REQUIRE(fault(options) == "loss.scalers");
  options.scalers = {"node_weights", "node_weights"};
  REQUIRE(fault(options) == "loss.scalers.1");
  options = {};
  options.unnamed_scalers.of<TimeStepsKind>().time_weights = {0.0, 0.0};
  REQUIRE(fault(options) == "loss.time_weights");
  options = {};
  options.unnamed_scalers.of<VarTendencyKind>().tendency.timestep = "six";
  REQUIRE(fault(options) == "loss.tendency.timestep");
}
