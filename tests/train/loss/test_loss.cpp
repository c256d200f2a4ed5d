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

using namespace aifs;
using namespace aifs::train;
using namespace aifs::test;

namespace {

PointwiseLoss example_loss(LossKind kind) {
  PointwiseLoss loss;
  loss.kind = kind;
  loss.scalers = example_scalers();
  return loss;
}

at::Tensor columns(const at::Tensor& field, const std::vector<int64_t>& list) {
  return field.index_select(kVariable, at::tensor(list, at::kLong));
}

}  // namespace

TEST_CASE("losses have the reference values", "[loss]") {
  const auto value = [](LossKind kind) { return example_loss(kind)(prediction(), target()); };
  require_value(value(LossKind::kMse), 0.2985553736);
  require_value(value(LossKind::kMae), 0.5239271123);
  require_value(value(LossKind::kRmse), 0.5464022086);
  require_value(value(LossKind::kHuber), 0.1492776868);
  require_value(value(LossKind::kLogCosh), 0.1405526923);
}

TEST_CASE("variables are averaged, summed or kept", "[loss]") {
  const PointwiseLoss mse = example_loss(LossKind::kMse);
  require_value(mse(prediction(), target(), OverVariables::kSum), 0.8956661208);
  const auto kept = [](LossKind kind) {
    return example_loss(kind)(prediction(), target(), OverVariables::kKeep);
  };
  REQUIRE(max_difference(kept(LossKind::kMse),
                         at::tensor({0.2498572717, 0.1278273779, 0.5179814712}, at::kDouble)) <=
          kTenDigits);
  REQUIRE(max_difference(kept(LossKind::kRmse),
                         at::tensor({0.4998572513, 0.3575295483, 0.7197092963}, at::kDouble)) <=
          kTenDigits);
}

TEST_CASE("a subset takes the columns of fields and scalers", "[loss]") {
  const std::vector<int64_t> some{0, 2};
  require_value(example_loss(LossKind::kMse)
                    .for_columns(some)(columns(prediction(), some), columns(target(), some)),
                0.3839193715);
}

TEST_CASE("scalers are left out by axis or by name", "[loss]") {
  const PointwiseLoss mse = example_loss(LossKind::kMse);
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
  require_value(example_loss(LossKind::kMse)(example_field(true, 3), target()), 0.5630713739);
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
  PointwiseLoss loss = example_loss(LossKind::kHuber), doubled = loss;
  doubled.scalers[1].factor = at::cat({loss.scalers[1].factor, loss.scalers[1].factor}, 3) / 2;
  const auto twice = [](const at::Tensor& field) { return at::cat({field, field}, 3); };
  require_value(doubled(twice(prediction()), twice(target())),
                loss(prediction(), target()).item<double>());
}

TEST_CASE("a loss with scalers needs one over the grid", "[loss]") {
  PointwiseLoss loss = example_loss(LossKind::kMse).without(kGrid);
  REQUIRE_THROWS_AS(loss(prediction(), target()), Error);
}

TEST_CASE("Huber changes from square to line at delta", "[loss]") {
  PointwiseLoss loss;
  loss.kind = LossKind::kHuber;
  loss.huber_delta = 0.5;
  const auto value = [&](double d) {
    const at::Tensor p = at::full({1, 1, 1, 1, 1}, d, at::kDouble);
    return loss(p, at::zeros_like(p)).item<double>();
  };
  REQUIRE(value(0.3) == Approx(0.5 * 0.09).epsilon(1e-14));
  REQUIRE(value(-2.0) == Approx(0.5 * (2.0 - 0.25)).epsilon(1e-14));
  REQUIRE(value(0.5 - 1e-9) == Approx(value(0.5 + 1e-9)).epsilon(1e-8));
}

TEST_CASE("NaN count as no error where they are ignored, and get no gradient", "[loss]") {
  PointwiseLoss loss = example_loss(LossKind::kMse);
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

TEST_CASE("gradients of every loss are central differences", "[loss]") {
  for (const auto& [kind, name] : EnumNames<LossKind>::table) {
    INFO(name);
    PointwiseLoss loss = example_loss(kind);
    loss.huber_delta = 0.8;
    const at::Tensor truth = random_tensor({2, 2, 1, 4, 3}, 2);
    const auto function = [&](const std::vector<at::Tensor>& in) {
      return loss(in[0], truth, OverVariables::kKeep);
    };
    REQUIRE(test::gradient_error(function, {random_tensor({2, 2, 2, 4, 3}, 1)}) <=
            test::gradient_tolerance());
  }
}

TEST_CASE("single precision fields are summed in double", "[loss]") {
  PointwiseLoss loss = example_loss(LossKind::kMse);
  for (Scaler& scaler : loss.scalers)
    scaler.factor = scaler.factor.to(at::kFloat);
  const at::Tensor value = loss(prediction().to(at::kFloat), target().to(at::kFloat));
  REQUIRE(value.scalar_type() == at::kDouble);
  REQUIRE(std::abs(value.item<double>() - 0.2985553736) <= 1e-6 * 0.3);
}
