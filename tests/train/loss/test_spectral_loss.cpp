// SPDX-License-Identifier: Apache-2.0
#include "train/loss/spectral_loss.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "core/check.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"
#include "tests/train/loss_samples.h"

using namespace aifs;
using namespace aifs::train;
using namespace aifs::test;

namespace {

SpectralTransform rectangle(TransformKind kind) {
  SpectralTransform transform;
  transform.kind = kind;
  transform.y_dim = 2;
  transform.x_dim = 4;
  return transform;
}

// Four rings of six points.
SpectralTransform sphere(int64_t truncation) {
  SpectralTransform transform;
  transform.kind = TransformKind::kReducedSht;
  transform.sphere =
      std::make_shared<const model::SphericalTransform>(std::vector<int64_t>(4, 6), truncation);
  return transform;
}

double gradient_error_of(const Loss& loss, int64_t members, int64_t nodes) {
  // A peak at the first node keeps all coefficients away from 0, where logarithms and ratios are
  // too steep for differences.
  at::Tensor x = random_tensor({1, 2, members, nodes, 2}, 1);
  at::Tensor y = random_tensor({1, 2, 1, nodes, 2}, 2);
  x.select(3, 0).add_(10.0);
  y.select(3, 0).add_(10.0);
  return gradient_error([&](const auto& in) { return loss(in[0], y); }, {x});
}

}  // namespace

TEST_CASE("equal fields have no error", "[spectral_loss]") {
  const at::Tensor x = random_tensor({1, 1, 1, 24, 2}, 3);
  // AMSE adds 1e-8 to powers: at most 4e-8 for each of the three degrees.
  for (const SpectralKind kind : {SpectralKind::kAmse, SpectralKind::kPower}) {
    REQUIRE(std::abs(SpectralLoss(kind, sphere(2), {}, "loss")(x, x).item<double>()) <= 1.2001e-7);
  }
  const SpectralLoss correlation(SpectralKind::kCorrelation, rectangle(TransformKind::kFft2d), {},
                                 "loss");
  const at::Tensor plane = x.narrow(3, 0, 8);
  REQUIRE(std::abs(correlation(plane, plane).item<double>()) <= 1e-12);
}

TEST_CASE("a constant error is power of the first coefficient only", "[spectral_loss]") {
  // The field 1 has c_00 = 4 pi, the field 2 twice that.
  const at::Tensor one = at::ones({1, 1, 1, 24, 1}, at::kDouble);
  const double p = 16 * std::numbers::pi * M_PI;
  const SpectralLoss power(SpectralKind::kPower, sphere(2), {}, "loss");
  REQUIRE(std::abs(power(2 * one, one).item<double>() - 9 * p * p) <= 1e-9 * p * p);
}

TEST_CASE("gradients of spectral losses are right", "[spectral_loss]") {
  for (const SpectralKind kind : {SpectralKind::kAmse, SpectralKind::kPower}) {
    REQUIRE(gradient_error_of(SpectralLoss(kind, sphere(2), {}, "loss"), 1, 24) <=
            gradient_tolerance());
  }
  for (const SpectralKind kind : {SpectralKind::kLogDistance, SpectralKind::kCorrelation}) {
    REQUIRE(gradient_error_of(SpectralLoss(kind, rectangle(TransformKind::kFft2d), {}, "loss"), 1,
                              8) <= gradient_tolerance());
  }
  REQUIRE(gradient_error_of(SpectralLoss(SpectralKind::kLogDistance,
                                         rectangle(TransformKind::kDct2d), {}, "loss"),
                            1, 8) <= gradient_tolerance());
  for (const bool of_moduli : {false, true}) {
    REQUIRE(gradient_error_of(
                SpectralCrpsLoss(0.95, of_moduli, rectangle(TransformKind::kFft2d), {}, "loss"), 3,
                8) <= gradient_tolerance());
  }
}

TEST_CASE("what is not defined is refused", "[spectral_loss]") {
  REQUIRE_THROWS_AS(SpectralLoss(SpectralKind::kAmse, rectangle(TransformKind::kFft2d), {}, "loss"),
                    ConfigError);
  REQUIRE_THROWS_AS(SpectralLoss(SpectralKind::kPower, sphere(2), {.ignore_nans = true}, "loss"),
                    ConfigError);
  SpectralTransform cut = sphere(2);
  cut.subgrid = {0, 5};
  REQUIRE_THROWS_AS(SpectralLoss(SpectralKind::kPower, cut, {}, "loss"), ConfigError);
  // Weights of nodes are no weights of degrees.
  const SpectralLoss weighted(SpectralKind::kPower, sphere(2),
                              {.scalers = {over_axis("node", at::ones({24}, at::kDouble), kGrid)}},
                              "loss");
  const at::Tensor x = random_tensor({1, 1, 1, 24, 1}, 4);
  REQUIRE_THROWS_AS(weighted(x, x), Error);
}

TEST_CASE("a transform may be of a part of the nodes, or of another grid", "[spectral_loss]") {
  SpectralTransform part = rectangle(TransformKind::kFft2d);
  part.subgrid = {3, 11};
  const at::Tensor x = random_tensor({1, 1, 1, 12, 1}, 5);
  const at::Tensor expected = rectangle(TransformKind::kFft2d)(x.narrow(3, 3, 8));
  REQUIRE(at::equal(part(x), expected));
  SpectralTransform projected = rectangle(TransformKind::kFft2d);
  const std::vector<int64_t> row{0, 1, 2, 3, 4, 5, 6, 7}, column{3, 4, 5, 6, 7, 8, 9, 10};
  projected.projection =
      std::make_shared<const SparseRows>(row, column, std::vector<float>(8, 1.0f), 8, 12);
  REQUIRE(at::equal(projected(x), expected));
}

TEST_CASE("ranks compute spectra from all nodes", "[spectral_loss]") {
  const SpectralLoss loss(SpectralKind::kAmse, sphere(2), {}, "loss");
  const at::Tensor x = random_tensor({1, 2, 1, 24, 2}, 6), y = random_tensor({1, 2, 1, 24, 2}, 7);
  const LossResult one = whole(loss, x, y), three = by_ranks(loss, x, y, {0, 5, 17, 24});
  REQUIRE(max_difference(one.value, three.value) <= 1e-14 * one.value.item<double>());
  REQUIRE(max_difference(one.gradient, three.gradient) <=
          1e-14 * one.gradient.abs().max().item<double>());
}
