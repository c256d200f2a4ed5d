// SPDX-License-Identifier: Apache-2.0
// The vectors are from appendix A.2 of the specification of training.
#include "train/loss/loss.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "core/check.h"
#include "tests/support/catch.h"
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

PointwiseLoss example_loss(PointwiseError error) {
  return {.error = std::move(error), .scalers = example_scalers()};
}

at::Tensor columns(const at::Tensor& field, const std::vector<int64_t>& list) {
  return field.index_select(kVariable, at::tensor(list, at::kLong));
}

}  // namespace

TEST_CASE("losses have the reference values", "[loss]") {
  const auto value = [](const PointwiseError& error) {
    return example_loss(error)(prediction(), target());
  };
  require_value(value(mse_error()), 0.2985553736);
  require_value(value(mae_error()), 0.5239271123);
  require_value(value(rmse_error()), 0.5464022086);
  require_value(value(huber_error(1.0)), 0.1492776868);
  require_value(value(logcosh_error()), 0.1405526923);
}

TEST_CASE("variables are averaged, summed or kept", "[loss]") {
  const PointwiseLoss mse = example_loss(mse_error());
  require_value(mse(prediction(), target(), OverVariables::kSum), 0.8956661208);
  const auto kept = [](const PointwiseError& error) {
    return example_loss(error)(prediction(), target(), OverVariables::kKeep);
  };
  REQUIRE(max_difference(kept(mse_error()), at::tensor({0.2498572717, 0.1278273779, 0.5179814712},
                                                       at::kDouble)) <= kTenDigits);
  REQUIRE(max_difference(kept(rmse_error()), at::tensor({0.4998572513, 0.3575295483, 0.7197092963},
                                                        at::kDouble)) <= kTenDigits);
}

TEST_CASE("a subset takes the columns of fields and scalers", "[loss]") {
  const std::vector<int64_t> some{0, 2};
  require_value(example_loss(mse_error())
                    .for_columns(some)(columns(prediction(), some), columns(target(), some)),
                0.3839193715);
}

TEST_CASE("scalers are left out by axis or by name", "[loss]") {
  const PointwiseLoss mse = example_loss(mse_error());
  require_value(mse.without(kTime)(prediction(), target()), 0.5971107472);
  require_value(mse.without("time")(prediction(), target()), 0.5971107472);
  REQUIRE(mse.without("no such scaler").scalers.size() == 3);
  REQUIRE(mse.without(kVariable).scalers.size() == 2);
}

TEST_CASE("a scaler over an axis of size one is left out too", "[loss]") {
  PointwiseLoss loss;
  loss.scalers = {over_axis("node", at::tensor({0.5}, at::kDouble), kGrid),
                  over_axis("variable", at::tensor({3.0}, at::kDouble), kVariable)};
  const at::Tensor one = at::ones({1, 1, 1, 1, 1}, at::kDouble);
  require_value(loss(one, 0 * one), 1.5);
  require_value(loss.without(kVariable)(one, 0 * one), 0.5);
}

TEST_CASE("members are averaged against one target", "[loss]") {
  require_value(example_loss(mse_error())(example_field(true, 3), target()), 0.5630713739);
}

TEST_CASE("time and grid are summed, batch, members and variables averaged", "[loss]") {
  PointwiseLoss loss;  // no scalers
  const at::Tensor ones = at::ones({5, 2, 3, 7, 4}, at::kDouble);
  require_value(loss(ones, 0 * ones), 2 * 7);
  // One point off by one in all variables, weight one: the loss is one for any batch.
  loss.scalers = {over_axis("node", at::tensor({1.0}, at::kDouble), kGrid)};
  for (const int64_t batch : {1, 3}) {
    const at::Tensor point = at::ones({batch, 1, 1, 1, 4}, at::kDouble);
    require_value(loss(point, 0 * point), 1.0);
  }
}

TEST_CASE("a grid twice over with half the weights has the same loss", "[loss]") {
  PointwiseLoss loss = example_loss(huber_error(1.0)), doubled = loss;
  doubled.scalers[1].factor = at::cat({loss.scalers[1].factor, loss.scalers[1].factor}, 3) / 2;
  const auto twice = [](const at::Tensor& field) { return at::cat({field, field}, 3); };
  require_value(doubled(twice(prediction()), twice(target())),
                loss(prediction(), target()).item<double>());
}

TEST_CASE("a loss with scalers needs one over the grid", "[loss]") {
  PointwiseLoss loss = example_loss(mse_error()).without(kGrid);
  REQUIRE_THROWS_AS(loss(prediction(), target()), Error);
}

TEST_CASE("NaN count as no error where they are ignored, and get no gradient", "[loss]") {
  PointwiseLoss loss = example_loss(mse_error());
  loss.ignore_nans = true;
  const at::Tensor hole = prediction().clone();
  hole[0][1][0][2][1] = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor filled = prediction().clone();
  filled[0][1][0][2][1] = target()[0][1][0][2][1];
  hole.set_requires_grad(true);
  const at::Tensor value = loss(hole, target());
  require_value(value, loss(filled, target()).item<double>());
  value.backward();
  REQUIRE(hole.grad().isfinite().all().item<bool>());
  REQUIRE(hole.grad()[0][1][0][2][1].item<double>() == 0.0);
  loss.ignore_nans = false;
  REQUIRE(std::isnan(loss(hole, target()).item<double>()));
}

TEST_CASE("gradients of every point-wise loss are central differences", "[loss]") {
  int64_t checked = 0;
  for (const auto& entry : LossKind::kinds()) {
    const std::unique_ptr<LossKind> kind = entry.make();
    const auto* pointwise = dynamic_cast<const PointwiseKind*>(kind.get());
    if (!pointwise) continue;
    INFO(entry.name);
    ++checked;
    const PointwiseLoss loss = example_loss(pointwise->error());
    const at::Tensor truth = random_tensor({2, 2, 1, 4, 3}, 2);
    const auto function = [&](const std::vector<at::Tensor>& in) {
      return loss(in[0], truth, OverVariables::kKeep);
    };
    REQUIRE(test::gradient_error(function, {random_tensor({2, 2, 2, 4, 3}, 1)}) <=
            test::gradient_tolerance());
  }
  REQUIRE(checked >= 5);
}

TEST_CASE("single precision fields are summed in double", "[loss]") {
  PointwiseLoss loss = example_loss(mse_error());
  for (Scaler& scaler : loss.scalers)
    scaler.factor = scaler.factor.to(at::kFloat);
  const at::Tensor value = loss(prediction().to(at::kFloat), target().to(at::kFloat));
  REQUIRE(value.scalar_type() == at::kDouble);
  REQUIRE(std::abs(value.item<double>() - 0.2985553736) <= 1e-6 * 0.3);
}
