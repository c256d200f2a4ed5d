// SPDX-License-Identifier: Apache-2.0
#include "train/loss_setup.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::train;

namespace {

// Forcing f, prognostic t_500 and u_850, diagnostic tp; three cells.
struct Setup {
  data::VariableTable variables{{"f", "t_500", "tp", "u_850"}, {{"f"}, {"tp"}}};
  data::Statistics statistics{{0, 0, 0, 0}, {1, 6, 1, 8}, {0, 0, 0, 0}, {1, 1, 1, 1}};
  std::map<int64_t, data::Statistics> tendencies{
      {21600, {{0, 0, 0, 0}, {1, 2, 1, 4}, {0, 0, 0, 0}, {1, 1, 1, 1}}}};

  PointwiseLoss build(const std::vector<std::string>& scalers, LossOptions options = {}) const {
    options.scalers = scalers;
    return build_loss(options, {.variables = variables,
                                .statistics = statistics,
                                .tendencies = tendencies,
                                .area_weights = {1.0f, 2.0f, 5.0f},
                                .timestep_s = 21600,
                                .times_out = 2});
  }
};

std::vector<double> values(const Scaler& scaler) {
  const at::Tensor flat = scaler.factor.to(at::kDouble).flatten();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

}  // namespace

TEST_CASE("scalers come in the order of the configuration, each on its axis", "[loss_setup]") {
  const PointwiseLoss loss =
      Setup().build({"time_steps", "node_weights", "general_variable", "stdev_tendency"});
  std::vector<std::string> names;
  for (const Scaler& scaler : loss.scalers)
    names.push_back(scaler.name);
  REQUIRE(names == std::vector<std::string>{"time_steps", "node_weights", "general_variable",
                                            "stdev_tendency"});
  REQUIRE(loss.scalers[0].factor.sizes() == at::IntArrayRef({1, 2, 1, 1, 1}));
  REQUIRE(loss.scalers[1].factor.sizes() == at::IntArrayRef({1, 1, 1, 3, 1}));
  REQUIRE(loss.scalers[2].factor.sizes() == at::IntArrayRef({1, 1, 1, 1, 3}));
}

TEST_CASE("weights follow areas, parameters and tendencies", "[loss_setup]") {
  const PointwiseLoss loss =
      Setup().build({"node_weights", "general_variable", "stdev_tendency", "var_tendency"});
  REQUIRE(values(loss.scalers[0])[2] == Approx(5.0 / 8.0));
  const auto by_parameter = values(loss.scalers[1]);  // t_500, tp, u_850
  REQUIRE(by_parameter[0] == Approx(6.0));
  REQUIRE(by_parameter[1] == Approx(0.025));
  REQUIRE(by_parameter[2] == Approx(0.8));
  REQUIRE(values(loss.scalers[2]) == std::vector<double>{3.0, 1.0, 2.0});
  REQUIRE(values(loss.scalers[3]) == std::vector<double>{9.0, 1.0, 4.0});
}

TEST_CASE("tendency statistics that are not there are an error that lists those that are",
          "[loss_setup]") {
  LossOptions options;
  options.tendency.timestep = "12h";
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

TEST_CASE("the NaN mask weighs imputed outputs with 0, in its place among the scalers",
          "[loss_setup]") {
  const Setup setup;
  LossOptions options;
  options.scalers = {"node_weights", "nan_mask_weights", "time_steps"};
  REQUIRE(has_nan_mask(options));
  at::Tensor mask = at::zeros({1, 3, 4}, at::kByte);
  mask[0][1][1] = 1;  // t_500 of cell 1
  mask[0][2][0] = 1;  // f is no output
  const Scaler scaler = nan_mask_scaler(mask, setup.variables, at::kFloat);
  REQUIRE(scaler.factor.sizes() == at::IntArrayRef({1, 1, 1, 3, 3}));
  REQUIRE(values(scaler) == std::vector<double>{1, 1, 1, 0, 1, 1, 1, 1, 1});
  const PointwiseLoss loss = with_nan_mask(setup.build(options.scalers), options, scaler);
  REQUIRE(loss.scalers.size() == 3);
  REQUIRE(loss.scalers[1].name == "nan_mask_weights");
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
  options.time_weights = {0.0, 0.0};
  REQUIRE(fault(options) == "loss.time_weights");
  options = {};
  options.tendency.timestep = "six";
  REQUIRE(fault(options) == "loss.tendency.timestep");
}
