// SPDX-License-Identifier: Apache-2.0
// The vectors are from appendix A.2 of the specification of training.
#include "train/loss/ensemble_loss.h"

#include <ATen/ATen.h>

#include <limits>

#include "core/check.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"
#include "tests/train/loss_samples.h"

using namespace aifs;
using namespace aifs::train;
using namespace aifs::test;

namespace {

double crps(double alpha) {
  return CrpsLoss(alpha, example_options())(members(), target()).item<double>();
}

double energy(NormOver over, bool fair) {
  return EnergyLoss(over, fair, example_options())(members(), target()).item<double>();
}

}  // namespace

TEST_CASE("the CRPS has the reference values", "[ensemble_loss]") {
  REQUIRE(std::abs(crps(0.95) - 0.3412464964) <= kTenDigits);
  REQUIRE(std::abs(crps(1.0) - 0.3359548554) <= kTenDigits);
  REQUIRE(std::abs(crps(0.0) - 0.4417876748) <= kTenDigits);
  LossCall call;
  call.over_variables = OverVariables::kKeep;
  const at::Tensor kept = CrpsLoss(0.95, example_options())(members(), target(), call);
  REQUIRE(max_difference(kept, at::tensor({0.2704710384, 0.1496395503, 0.6036289004},
                                          at::kDouble)) <= kTenDigits);
}

TEST_CASE("the energy score has the reference values", "[ensemble_loss]") {
  using N = NormOver;
  REQUIRE(std::abs(energy(N::kSpatial, true) - 0.3560486514) <= kTenDigits);
  REQUIRE(std::abs(energy(N::kSpatial, false) - 0.4748303887) <= kTenDigits);
  REQUIRE(std::abs(energy(N::kVariables, true) - 0.5429844278) <= kTenDigits);
  REQUIRE(std::abs(energy(N::kVariables, false) - 0.7216666927) <= kTenDigits);
  REQUIRE(std::abs(energy(N::kSpatialAndVariables, true) - 0.5719059218) <= kTenDigits);
  REQUIRE(std::abs(energy(N::kSpatialAndVariables, false) - 0.7626487814) <= kTenDigits);
}

TEST_CASE("a score over variables has no sum over variables", "[ensemble_loss]") {
  LossCall call;
  call.over_variables = OverVariables::kSum;
  const EnergyLoss loss(NormOver::kVariables, true, example_options());
  REQUIRE_THROWS_AS(loss(members(), target(), call), Error);
}

TEST_CASE("equal members have neither spread nor a gradient between them", "[ensemble_loss]") {
  const at::Tensor zero = at::zeros({1, 1, 3, 1, 1}, at::kDouble);
  const LossResult at_truth =
      whole(CrpsLoss(1.0, {}), zero, at::zeros({1, 1, 1, 1, 1}, at::kDouble));
  REQUIRE(at_truth.value.item<double>() == 0.0);
  REQUIRE(max_difference(at_truth.gradient, zero) == 0.0);
  const LossResult energy_at_truth = whole(EnergyLoss(NormOver::kSpatial, true, {}), zero,
                                           at::zeros({1, 1, 1, 1, 1}, at::kDouble));
  REQUIRE(max_difference(energy_at_truth.gradient, zero) == 0.0);
}

TEST_CASE("one member, or several truths, are refused", "[ensemble_loss]") {
  const CrpsLoss loss(0.95, example_options());
  REQUIRE_THROWS_AS(loss(prediction(), target()), Error);
  REQUIRE_THROWS_AS(loss(members(), members()), Error);
}

TEST_CASE("gradients of ensemble scores are right", "[ensemble_loss]") {
  const auto error = [](const Loss& loss) {
    return gradient_error([&](const auto& x) { return loss(x[0], x[1]); }, {members(), target()});
  };
  for (const double alpha : {0.0, 0.95, 1.0}) {
    REQUIRE(error(CrpsLoss(alpha, example_options())) <= gradient_tolerance());
  }
  for (const NormOver over :
       {NormOver::kSpatial, NormOver::kVariables, NormOver::kSpatialAndVariables}) {
    REQUIRE(error(EnergyLoss(over, true, example_options())) <= gradient_tolerance());
  }
}

TEST_CASE("a point with a NaN counts nothing, for all members", "[ensemble_loss]") {
  ElementaryOptions options = example_options();
  options.ignore_nans = true;
  at::Tensor holed = members().clone(), filled = members().clone();
  holed[0][1][2][3][0] = std::numeric_limits<double>::quiet_NaN();
  // A point where all members have the truth counts nothing, either.
  filled.select(1, 1).select(2, 3).select(2, 0).copy_(target()[0][1][0][3][0].expand({1, 3}));
  const CrpsLoss loss(0.95, options);
  const LossResult with_hole = whole(loss, holed, target()),
                   without_hole = whole(loss, filled, target());
  REQUIRE(max_difference(with_hole.value, without_hole.value) <= 1e-15);
  REQUIRE(at::isfinite(with_hole.gradient).all().item<bool>());
}

TEST_CASE("ranks that share the nodes get the score of the whole", "[ensemble_loss]") {
  const auto check = [](const Loss& loss) {
    const LossResult one = whole(loss, members(), target());
    const LossResult three = by_ranks(loss, members(), target(), {0, 1, 3, 4});
    REQUIRE(max_difference(one.value, three.value) <= 1e-15);
    REQUIRE(max_difference(one.gradient, three.gradient) <= 1e-15);
  };
  check(CrpsLoss(0.95, example_options()));
  for (const NormOver over :
       {NormOver::kSpatial, NormOver::kVariables, NormOver::kSpatialAndVariables}) {
    check(EnergyLoss(over, true, example_options()));
  }
}
