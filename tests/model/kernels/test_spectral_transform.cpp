// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/spectral_transform.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::max_difference;
using test::random_tensor;

namespace {

constexpr double kPi = std::numbers::pi;
const std::vector<int64_t> kRings{20, 24, 24, 20};

at::Tensor as_real(const at::Tensor& complex) {
  return at::view_as_real(complex.contiguous());
}

}  // namespace

TEST_CASE("Gauss-Legendre integrates polynomials exactly", "[spectral_transform]") {
  for (const int64_t n : {1, 2, 5, 32}) {
    const GaussLegendre gauss = gauss_legendre(n);
    double sum = 0.0, fourth = 0.0;
    for (size_t i = 0; i < gauss.nodes.size(); ++i) {
      sum += gauss.weights[i];
      fourth += gauss.weights[i] * std::pow(gauss.nodes[i], 4);
    }
    REQUIRE(std::abs(sum - 2.0) <= 1e-14);
    if (n >= 3) REQUIRE(std::abs(fourth - 0.4) <= 1e-14);
  }
  REQUIRE(gauss_legendre(2).nodes[0] > 0.0);  // from the north
}

TEST_CASE("a constant field has one coefficient", "[spectral_transform]") {
  const SphericalTransform sphere(kRings, 3);
  const at::Tensor c = sphere.analyse(at::ones({sphere.num_points()}, at::kDouble));
  at::Tensor expected = at::zeros({4, 4, 2}, at::kDouble);
  expected[0][0][0] = 4.0 * kPi;
  REQUIRE(max_difference(as_real(c), expected) <= 1e-13);
}

TEST_CASE("synthesis undoes analysis within the truncation", "[spectral_transform]") {
  const SphericalTransform sphere(kRings, 2);
  at::Tensor c = random_tensor({3, 3, 3, 2}, 1);
  for (int64_t l = 0; l < 3; ++l) {
    c.select(1, l).select(1, 0).select(1, 1).zero_();  // m = 0 is real
    for (int64_t m = l + 1; m < 3; ++m)
      c.select(1, l).select(1, m).zero_();
  }
  const at::Tensor back = sphere.analyse(sphere.synthesise(at::view_as_complex(c.contiguous())));
  REQUIRE(max_difference(as_real(back), c) <= 1e-13);
}

TEST_CASE("rings too short for a wave give nothing to it", "[spectral_transform]") {
  const SphericalTransform sphere({4, 16, 16, 4}, 3);
  const at::Tensor field = random_tensor({40}, 2);
  at::Tensor without_poles = field.clone();
  without_poles.narrow(0, 0, 4).zero_();
  without_poles.narrow(0, 36, 4).zero_();
  REQUIRE(max_difference(as_real(sphere.analyse(field).select(-1, 3)),
                         as_real(sphere.analyse(without_poles).select(-1, 3))) <= 1e-14);
}

TEST_CASE("a truncation beyond the rings is refused", "[spectral_transform]") {
  REQUIRE_THROWS_AS(SphericalTransform(kRings, 4), Error);
  REQUIRE_THROWS_AS(SphericalTransform(kRings, 3).analyse(at::ones({7}, at::kDouble)), Error);
}

TEST_CASE("gradients of the transforms are right", "[spectral_transform]") {
  const SphericalTransform sphere({5, 8, 8, 5}, 2);
  REQUIRE(test::gradient_error(
              [&](const auto& in) { return at::view_as_real(sphere.analyse(in[0]).contiguous()); },
              {random_tensor({2, 26}, 3)}) <= test::gradient_tolerance());
  REQUIRE(test::gradient_error(
              [&](const auto& in) { return sphere.synthesise(at::view_as_complex(in[0])); },
              {random_tensor({3, 3, 2}, 4)}) <= test::gradient_tolerance());
  REQUIRE(test::gradient_error([](const auto& in) { return cosine_2d(in[0], 3, 4); },
                               {random_tensor({12}, 5)}) <= test::gradient_tolerance());
  REQUIRE(test::gradient_error(
              [](const auto& in) {
                return at::view_as_real(fourier_2d(in[0], 3, 4, true).contiguous());
              },
              {random_tensor({12}, 6)}) <= test::gradient_tolerance());
}

TEST_CASE("the cosine transform is its sum", "[spectral_transform]") {
  const int64_t y = 3, x = 5;
  const at::Tensor field = random_tensor({y * x}, 7);
  const at::Tensor waves = cosine_2d(field, y, x);
  for (int64_t ky = 0; ky < y; ++ky) {
    for (int64_t kx = 0; kx < x; ++kx) {
      double sum = 0.0;
      for (int64_t j = 0; j < y; ++j) {
        for (int64_t i = 0; i < x; ++i) {
          const auto wave = [](int64_t k, int64_t at, int64_t n) {
            return 2.0 * std::cos(kPi * static_cast<double>(k * (2 * at + 1)) /
                                  (2.0 * static_cast<double>(n)));
          };
          sum += field[j * x + i].item<double>() * wave(ky, j, y) * wave(kx, i, x);
        }
      }
      REQUIRE(std::abs(waves[ky][kx].item<double>() - sum) <= 1e-13);
    }
  }
}

TEST_CASE("the filter drops waves of two points and less", "[spectral_transform]") {
  const at::Tensor kept = fourier_filter(4, 4);
  REQUIRE(kept[0][0].item<bool>());
  REQUIRE(kept[1][1].item<bool>());
  REQUIRE_FALSE(kept[2][0].item<bool>());
  const at::Tensor field = random_tensor({16}, 8);
  const at::Tensor all = fourier_2d(field, 4, 4, false), some = fourier_2d(field, 4, 4, true);
  REQUIRE(at::equal(some, all * kept));
}

TEST_CASE("patches lie side by side, overlap, or stick out over zeros", "[spectral_transform]") {
  const at::Tensor field = at::arange(12, at::kDouble);  // 3 x 4
  const at::Tensor overlap = cut_patches(field, 3, 4, {2, 2, 1, 2});
  REQUIRE(overlap.sizes().vec() == std::vector<int64_t>{2, 2, 4});
  REQUIRE(at::equal(overlap[1][1], at::tensor({6.0, 7.0, 10.0, 11.0}, at::kDouble)));
  const at::Tensor out = cut_patches(field, 3, 4, {2, 3, 2, 3});
  REQUIRE(out.sizes().vec() == std::vector<int64_t>{2, 2, 6});
  REQUIRE(at::equal(out[1][1], at::tensor({11.0, 0.0, 0.0, 0.0, 0.0, 0.0}, at::kDouble)));
}
