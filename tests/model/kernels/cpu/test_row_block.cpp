// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/cpu/row_block.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/catch.h"

using namespace aifs::model;

namespace {

template <class T>
std::vector<T> random_values(int64_t count, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values)
    value = static_cast<T>(uniform(generator));
  return values;
}

// Checks a product of every number of rows up to 13, from each start, against sums in fp64.
template <class T>
void check_products(int64_t depth, int64_t width, bool transposed) {
  constexpr int64_t kMost = 13, kLanes = 32 / static_cast<int64_t>(sizeof(T));
  const int64_t panel = cpu::kPanel * kLanes;
  const int64_t panels = (width + panel - 1) / panel;
  const auto a = random_values<T>(kMost * depth, 1), bias = random_values<T>(width, 2),
             b = random_values<T>(panels * depth * panel, 3);
  for (int64_t rows = 1; rows <= kMost; ++rows) {
    for (const bool adds : {false, true}) {
      std::vector<T> out = random_values<T>(rows * width, 4);
      const std::vector<T> before = out;
      cpu::BlockProduct<T> product{.rows = rows,
                                   .depth = depth,
                                   .width = width,
                                   .a = a.data(),
                                   .a_row = transposed ? 1 : depth,
                                   .a_depth = transposed ? kMost : 1,
                                   .b = b.data(),
                                   .b_row = panel,
                                   .b_panel = panel * depth,
                                   .out = out.data(),
                                   .out_row = width};
      product.bias = bias.data();
      product.adds = adds;
      cpu::multiply(product);
      for (int64_t i = 0; i < rows * width; ++i) {
        const int64_t row = i / width, c = i % width;
        double sum = adds ? before[i] : bias[c];
        for (int64_t k = 0; k < depth; ++k) {
          sum += double{a[row * product.a_row + k * product.a_depth]} *
                 double{b[c / panel * product.b_panel + k * panel + c % panel]};
        }
        // Every term is at most 1, every sum is rounded.
        const double n = static_cast<double>(depth + 2);
        REQUIRE(std::abs(double{out[i]} - sum) <= n * n * std::numeric_limits<T>::epsilon());
      }
    }
  }
}

template <class T>
void check_gelu() {
  constexpr int64_t kCount = 1 << 14, kWidth = 16;
  std::vector<T> x(kCount), gelu(kCount), again(kCount), d(kCount, T(1)), sums(kWidth, T(0));
  for (int64_t i = 0; i < kCount; ++i)
    x[i] = static_cast<T>(-16.0 + 32.0 * static_cast<double>(i) / kCount);
  cpu::gelu(x.data(), kCount, gelu.data());
  cpu::gelu_backward(
      cpu::GeluBackward<T>{kCount / kWidth, kWidth, x.data(), d.data(), again.data(), sums.data()});
  REQUIRE(gelu == again);
  const double epsilon = std::numeric_limits<T>::epsilon();
  std::vector<double> columns(kWidth);
  for (int64_t i = 0; i < kCount; ++i) {
    const double v = x[i], p = 0.5 * std::erfc(-v / std::sqrt(2.0));
    const double density = std::exp(-0.5 * v * v) / std::sqrt(2.0 * std::acos(-1.0));
    // The probability is off by a few roundings, the exponential by those of its argument.
    REQUIRE(std::abs(gelu[i] - v * p) <= 2.0 * epsilon * std::max(1.0, std::abs(v)));
    REQUIRE(std::abs(d[i] - (p + v * density)) <= 4.0 * epsilon);
    columns[i % kWidth] += d[i];
  }
  for (int64_t c = 0; c < kWidth; ++c)
    REQUIRE(std::abs(sums[c] - columns[c]) <= kCount / kWidth * epsilon * columns[c]);
}

}  // namespace

TEST_CASE("products of blocks are sums of products", "[row_block]") {
  for (const bool transposed : {false, true}) {
    for (const int64_t depth : {1, 5, 48}) {
      for (const int64_t width : {8, 16, 24, 64}) {
        check_products<float>(depth, width, transposed);
        check_products<double>(depth, width, transposed);
      }
    }
  }
}

TEST_CASE("GELU and its slope are those of the error function", "[row_block]") {
  check_gelu<float>();
  check_gelu<double>();
}

TEST_CASE("GELU of values without bounds is not a number or has none", "[row_block]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x{std::nanf(""), kInfinity, -1e30f, 1e30f, -40.0f, 0.0f, -0.0f, 40.0f};
  std::vector<float> y(8);
  cpu::gelu(x.data(), 8, y.data());
  REQUIRE(std::isnan(y[0]));
  REQUIRE(y[1] == kInfinity);
  REQUIRE(y[3] == 1e30f);
  REQUIRE(std::abs(y[4]) <= 1e-30f);
  REQUIRE(y[5] == 0.0f);
  REQUIRE(y[6] == 0.0f);
  REQUIRE(y[7] == 40.0f);
}

TEST_CASE("rows without a finite variance have no norm", "[row_block]") {
  constexpr int64_t kWidth = 11, kRows = 4, kStride = cpu::padded<float>(kWidth);
  const auto ones = std::vector<float>(kStride, 1.0f), zeros = std::vector<float>(kStride, 0.0f);
  std::vector<float> z(kRows * kStride), y(kRows * kWidth), statistics(2 * kRows);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t c = 0; c < kWidth; ++c)
      z[row * kStride + c] = static_cast<float>(c);
  }
  z[1 * kStride + 3] = 1e37f;
  z[2 * kStride + 10] = std::numeric_limits<float>::infinity();
  z[3 * kStride] = std::nanf("");
  cpu::norm(cpu::Norm<float>{kRows, kWidth, z.data(), ones.data(), zeros.data(), nullptr, 1e-5f,
                             y.data(), statistics.data()});
  for (int64_t i = 0; i < kRows * kWidth; ++i)
    REQUIRE(std::isnan(y[i]) == (i >= kWidth));
}
