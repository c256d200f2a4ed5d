// SPDX-License-Identifier: Apache-2.0
// The vectors are from appendix A.2 of the specification of training.
#include "train/loss/loss_term.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"
#include "tests/train/loss_samples.h"
#include "train/loss/huber.h"
#include "train/loss/logcosh.h"
#include "train/loss/mae.h"
#include "train/loss/mse.h"

using namespace aifs;
using namespace aifs::train;
using namespace aifs::test;

namespace {

LossPtr pointwise(const PointwiseError& error, ElementaryOptions options = example_options()) {
  return std::make_shared<PointwiseTerm>(error, std::move(options));
}

LossCall keep(OverVariables reduction) {
  LossCall call;
  call.over_variables = reduction;
  return call;
}

}  // namespace

TEST_CASE("a sum of losses is the weighted sum of its parts", "[loss_term]") {
  const LossPtr mse = pointwise(mse_error()), mae = pointwise(mae_error());
  const WeightedSum sum({{mse, 0.7}, {mae, 0.3}});
  for (const OverVariables reduction :
       {OverVariables::kMean, OverVariables::kSum, OverVariables::kKeep}) {
    const LossCall call = keep(reduction);
    REQUIRE(max_difference(sum(prediction(), target(), call),
                           0.7 * (*mse)(prediction(), target(), call) +
                               0.3 * (*mae)(prediction(), target(), call)) <= 1e-15);
  }
  require_value(sum(prediction(), target(), without("time")),
                0.7 * 0.5971107472 + 0.3 * 2 * 0.5239271123);
  require_value(WeightedSum({})(prediction(), target(), {}), 0.0);
}

TEST_CASE("a call may ask for some variables", "[loss_term]") {
  LossCall call;
  call.columns = {0, 2};
  require_value((*pointwise(mse_error()))(prediction(), target(), call), 0.3839193715);
  call.columns = std::vector<int64_t>{};
  require_value((*pointwise(mse_error()))(prediction(), target(), call), 0.0);
}

TEST_CASE("a loss may compare some columns, each with another one of the target", "[loss_term]") {
  ElementaryOptions options = example_options();
  options.columns = {{2, 0}, {0, 0}};
  const LossPtr loss = pointwise(mse_error(), options);
  // By hand: weights of variables 2 and 0, both against column 0.
  const at::Tensor error = at::stack({prediction().select(-1, 2), prediction().select(-1, 0)}, -1) -
                           target().narrow(-1, 0, 1);
  const at::Tensor grid = at::tensor({0.1, 0.2, 0.3, 0.4}, at::kDouble).unsqueeze(1);
  const at::Tensor per_variable = (error.square() * grid * 0.5).sum(at::IntArrayRef{0, 1, 2, 3}) *
                                  at::tensor({2.0, 1.0}, at::kDouble);
  require_value((*loss)(prediction(), target()), per_variable.mean().item<double>());
  const at::Tensor kept = (*loss)(prediction(), target(), keep(OverVariables::kKeep));
  REQUIRE(max_difference(kept, at::stack({per_variable[1], at::zeros({}, at::kDouble),
                                          per_variable[0]})) <= 1e-15);
}

TEST_CASE("the mask of the batch takes the place of its scaler", "[loss_term]") {
  ElementaryOptions options = example_options();
  options.scalers.insert(options.scalers.begin(), {kNanMaskName, {}, {kBatch, kGrid, kVariable}});
  const LossPtr loss = pointwise(mse_error(), options);
  require_value((*loss)(prediction(), target()), 0.2985553736);  // no mask
  LossCall call;
  at::Tensor mask = at::ones({1, 4, 3}, at::kDouble);
  mask.select(2, 1).zero_();
  call.nan_mask = over_axes(kNanMaskName, mask, {kBatch, kGrid, kVariable});
  require_value((*loss)(prediction(), target(), call), (0.2498572717 + 0.5179814712) / 3.0);
}

TEST_CASE("time aggregates have the reference values", "[loss_term]") {
  const at::Tensor weights = at::tensor({0.5, 0.5}, at::kDouble);
  const auto value = [&](std::vector<TimeAggregate> kinds) {
    return TimeAggregateLoss(std::move(kinds), pointwise(mse_error()), weights)(prediction(),
                                                                                target(), {});
  };
  require_value(value({TimeAggregate::kMean}), 0.2612898970);
  require_value(value({TimeAggregate::kMax}), 0.4527938050);
  require_value(value({TimeAggregate::kMin}), 0.1443169422);
  require_value(value({TimeAggregate::kDiff}), 0.0745309532);
  require_value(
      value({TimeAggregate::kMean, TimeAggregate::kMax, TimeAggregate::kMin, TimeAggregate::kDiff}),
      0.2332328994);
  const TimeAggregateLoss loss({TimeAggregate::kMean}, pointwise(mse_error()), {});
  REQUIRE_THROWS_AS(loss(prediction().narrow(1, 0, 1), target().narrow(1, 0, 1), {}), Error);
}

TEST_CASE("gradients of sums and aggregates are right", "[loss_term]") {
  const LossPtr mse = pointwise(mse_error()), logcosh = pointwise(logcosh_error());
  const WeightedSum sum({{mse, 0.7}, {logcosh, 0.3}});
  const TimeAggregateLoss aggregate(
      {TimeAggregate::kMean, TimeAggregate::kMax, TimeAggregate::kMin, TimeAggregate::kDiff}, mse,
      at::tensor({0.3, 0.7}, at::kDouble));
  for (const Loss* loss : {static_cast<const Loss*>(&sum), static_cast<const Loss*>(&aggregate)}) {
    REQUIRE(gradient_error([&](const auto& x) { return (*loss)(x[0], target()); },
                           {prediction()}) <= gradient_tolerance());
  }
}

TEST_CASE("ranks that share the nodes get the value and the gradient of the whole", "[loss_term]") {
  for (const PointwiseError& error : {mse_error(), rmse_error(), huber_error(1.0)}) {
    const LossPtr loss = pointwise(error);
    const LossResult one = whole(*loss, prediction(), target());
    const LossResult three = by_ranks(*loss, prediction(), target(), {0, 1, 3, 4});
    REQUIRE(max_difference(one.value, three.value) <= 1e-15);
    REQUIRE(max_difference(one.gradient, three.gradient) <= 1e-15);
  }
}
