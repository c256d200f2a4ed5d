// SPDX-License-Identifier: Apache-2.0
// The numbers are those of Anemoi's own tests (specification of training, appendix A.2 and A.3).
#include "train/loss/scalers.h"

#include <ATen/ATen.h>

#include "tests/support/catch.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::train;
using test::max_difference;

namespace {

const std::vector<std::string> kNames{"y_50", "y_500", "y_850", "q", "z", "other", "d"};
const std::map<std::string, double> kWeights{{"y", 0.5}, {"z", 0.1}, {"other", 100.0}};

// Largest error over the largest expected value; the numbers are given to six digits.
void require_close(const at::Tensor& weights, const std::vector<double>& expected,
                   double relative = 5e-6) {
  REQUIRE(weights.scalar_type() == at::kFloat);
  const at::Tensor e = at::tensor(expected, at::kDouble);
  REQUIRE(max_difference(weights / e, at::ones_like(e)) <= relative);
}

LevelScalerOptions levels(LevelScaling kind, double y_intercept) {
  return {.kind = kind, .y_intercept = y_intercept, .slope = 0.001, .parameters = {"y"}};
}

}  // namespace

TEST_CASE("weights go by parameter, levels by pressure", "[scalers]") {
  const at::Tensor general = variable_weights(kNames, kWeights);
  require_close(general, {0.5, 0.5, 0.5, 1, 0.1, 100, 1}, 1e-7);
  require_close(general * level_weights(kNames, levels(LevelScaling::kRelu, 0.2)),
                {0.1, 0.25, 0.425, 1, 0.1, 100, 1});
  require_close(general * level_weights(kNames, levels(LevelScaling::kLinear, 0.0)),
                {0.025, 0.25, 0.425, 1, 0.1, 100, 1});
  require_close(general * level_weights(kNames, levels(LevelScaling::kPolynomial, 0.2)),
                {0.10125, 0.225, 0.46125, 1, 0.1, 100, 1});
  require_close(level_weights(kNames, levels(LevelScaling::kNone, 0.2)), {1, 1, 1, 1, 1, 1, 1});
}

TEST_CASE("the default weight is that of the key default, or one", "[scalers]") {
  require_close(variable_weights({"a", "t_850"}, {{"default", 3.0}, {"t", 2.0}}), {3, 2});
  require_close(variable_weights({"a"}, {}), {1});
  REQUIRE_THROWS_WITH(variable_weights({"t_850"}, {{"t_850", 2.0}}),
                      ContainsSubstring("'loss.variable_weights.t_850'"));
}

TEST_CASE("tendency weights are the ratio of deviations for prognostic variables", "[scalers]") {
  const data::VariableTable variables(kNames, {.forcing = {}, .diagnostic = {"q", "z"}});
  data::Statistics statistics, tendencies;
  statistics.stdev = {10, 10, 10, 1, 1, 1, 2};
  tendencies.stdev = {5, 5, 5, 1, 1, 8.6, 1};
  const at::Tensor general = variable_weights(kNames, kWeights);
  require_close(general * tendency_weights(variables, statistics, tendencies, 1, false),
                {1, 1, 1, 1, 0.1, 11.6279, 2});
  require_close(general * tendency_weights(variables, statistics, tendencies, 2, false),
                {2, 2, 2, 1, 0.1, 1.35208, 4});
  // Anemoi's release forgets the variable in dataset column 0.
  require_close(tendency_weights(variables, statistics, tendencies, 1, true),
                {1, 2, 2, 1, 1, 1 / 8.6, 2});
  tendencies.stdev[6] = 0.0;
  REQUIRE_THROWS_WITH(tendency_weights(variables, statistics, tendencies, 1, false),
                      ContainsSubstring("variable 'd' has stdev 2, and 0 among"));
}

TEST_CASE("a variable mask is 0 where named and 1 elsewhere, or the opposite", "[scalers]") {
  const std::vector<std::string> names{"a", "b", "c"};
  REQUIRE(at::equal(variable_mask(names, {"c", "a"}, false), at::tensor({0.0f, 1.0f, 0.0f})));
  REQUIRE(at::equal(variable_mask(names, {"c", "a"}, true), at::tensor({1.0f, 0.0f, 1.0f})));
  REQUIRE(at::equal(variable_mask({"q_50", "sp", "q_850"}, {"q"}, false),
                    at::tensor({0.0f, 1.0f, 0.0f})));
  REQUIRE_THROWS_WITH(variable_mask(names, {"x"}, false),
                      ContainsSubstring("'x' is not predicted"));
}

TEST_CASE("lead-time weights decay and sum to one", "[scalers]") {
  const std::vector<double> leads{6, 12, 18, 24};
  LeadTimeDecayOptions options;
  options.decay = 0.5;
  require_close(lead_time_weights(leads, options), {0.3181818, 0.2727273, 0.2272727, 0.1818182},
                5e-7);
  options.kind = LeadTimeDecay::kExponential;
  options.inverse = true;
  require_close(lead_time_weights(leads, options), {0.1124558, 0.2116977, 0.2992784, 0.3765681},
                1e-6);
}

TEST_CASE("time weights are normalised, uniform by default", "[scalers]") {
  require_close(time_weights({}, 4), {0.25, 0.25, 0.25, 0.25}, 1e-7);
  require_close(time_weights({1, 3}, 2), {0.25, 0.75}, 1e-7);
  REQUIRE_THROWS_WITH(time_weights({1, 3}, 3), ContainsSubstring("'loss.time_weights'"));
}

TEST_CASE("norms divide by sum or mean", "[scalers]") {
  const at::Tensor weights = at::tensor({1.0f, 2.0f, 5.0f});
  require_close(normalise_weights(weights, WeightNorm::kUnitSum), {0.125, 0.25, 0.625}, 1e-7);
  require_close(normalise_weights(weights, WeightNorm::kUnitMean), {0.375, 0.75, 1.875}, 1e-7);
  REQUIRE(at::equal(normalise_weights(weights, WeightNorm::kNone), weights));
}

TEST_CASE("a scaler spans its axes and knows them, also where a field has size one", "[scalers]") {
  const Scaler mask = over_axes("mask", at::ones({2, 1, 4}), {kBatch, kGrid, kVariable});
  REQUIRE(mask.factor.sizes() == at::IntArrayRef{2, 1, 1, 1, 4});
  REQUIRE(mask.acts_on(kGrid));
  REQUIRE_FALSE(mask.acts_on(kTime));
  const Scaler time = over_axis("time", at::ones({1}), kTime);
  REQUIRE(time.factor.sizes() == at::IntArrayRef{1, 1, 1, 1, 1});
  REQUIRE(time.acts_on(kTime));
  REQUIRE_THROWS_WITH(over_axes("mask", at::ones({2, 3}), {kGrid}), ContainsSubstring("'mask'"));
}

TEST_CASE("masked nodes share a fixed part of the weight", "[scalers]") {
  const at::Tensor weights = at::tensor({1.0, 2.0, 3.0, 4.0}, at::kFloat);
  const at::Tensor mask = at::tensor({1, 1, 0, 0}, at::kByte).to(at::kBool);
  const at::Tensor result =
      normalise_weights(reweighted_nodes(weights, mask, 0.25), WeightNorm::kUnitSum);
  const at::Tensor expected = at::tensor({0.125, 0.125, 0.3214286, 0.4285714}, at::kFloat);
  REQUIRE((result - expected).abs().max().item<double>() <= 1e-7);
  REQUIRE_THROWS_AS(reweighted_nodes(weights, at::zeros({4}, at::kBool), 0.25), Error);
}

TEST_CASE("waves weigh the same, with sum 1 over the modes", "[scalers]") {
  REQUIRE(at::equal(spectral_weights(4, 2), at::full({8}, 0.25, at::kFloat)));
}
