// SPDX-License-Identifier: Apache-2.0
#include "graph/weights/normalisation.h"

#include <cmath>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

namespace {

template <class Real>
std::vector<Real> normalised(Norm norm, std::vector<Real> values) {
  normalise(norm, values);
  return values;
}

void require_near(const std::vector<double>& values, const std::vector<double>& expected) {
  REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    REQUIRE(values[i] == Approx(expected[i]).margin(1e-12).epsilon(1e-12));
}

}  // namespace

TEST_CASE("norms of (1, 2, 4) are the reference values", "[normalisation]") {
  const std::vector<double> v{1, 2, 4};
  require_near(normalised(Norm::kNone, v), v);
  require_near(normalised(Norm::kL1, v), {1.0 / 7, 2.0 / 7, 4.0 / 7});
  const double length = std::sqrt(21.0), std = std::sqrt(7.0 / 3);
  require_near(normalised(Norm::kL2, v), {1 / length, 2 / length, 4 / length});
  require_near(normalised(Norm::kUnitMax, v), {0.25, 0.5, 1});
  require_near(normalised(Norm::kUnitRange, v), {0, 0.25, 0.75});
  require_near(normalised(Norm::kUnitStd, v), {1 / std, 2 / std, 4 / std});
  require_near(normalised(Norm::kLog1p, v), {std::log(2.0), std::log(3.0), std::log(5.0)});
}

TEST_CASE("norms are idempotent up to rounding where they are scalings", "[normalisation]") {
  const std::vector<double> v{0.3, 2.5, 4.25, 0.01, 7};
  for (const Norm norm : {Norm::kL1, Norm::kL2, Norm::kUnitMax, Norm::kUnitStd})
    require_near(normalised(norm, normalised(norm, v)), normalised(norm, v));
}

TEST_CASE("groups are normalised by themselves, column by column", "[normalisation]") {
  // rows of width 2; groups 1 and 0, group 2 is empty
  const std::vector<double> v{1, 10, 3, 30, 5, 50, 5, 70};
  const std::vector<int32_t> group{1, 1, 0, 0};
  const auto grouped = [&](Norm norm) {
    std::vector<double> values = v;
    normalise_grouped(norm, values, 2, group, 3);
    return values;
  };
  require_near(grouped(Norm::kL1), {0.25, 0.25, 0.75, 0.75, 0.5, 50.0 / 120, 0.5, 70.0 / 120});
  require_near(grouped(Norm::kUnitMax), {1.0 / 3, 1.0 / 3, 1, 1, 1, 50.0 / 70, 1, 1});
  require_near(grouped(Norm::kUnitRange), {0, 0, 1, 1, 0, 0, 0, 1});
  require_near(grouped(Norm::kUnitStd), {1, 1, 3, 3, 5, 5, 5, 7});  // a deviation of 0 counts as 1
}

TEST_CASE("a statistic of zero is an error, a deviation of zero is not", "[normalisation]") {
  const std::vector<float> zero{0, 0}, balanced{-1, 1};
  REQUIRE_THROWS_AS(normalised(Norm::kL1, balanced), NumericalError);
  REQUIRE_THROWS_AS(normalised(Norm::kL2, zero), NumericalError);
  REQUIRE_THROWS_AS(normalised(Norm::kUnitMax, zero), NumericalError);
  REQUIRE_THROWS_WITH(normalised(Norm::kUnitRange, zero), ContainsSubstring("the maximum"));
  REQUIRE(normalised(Norm::kUnitStd, std::vector<float>{3, 3, 3}) == std::vector<float>{3, 3, 3});
  REQUIRE(normalised(Norm::kUnitStd, std::vector<float>{3}) == std::vector<float>{3});
  const std::vector<float> rounding{1.0F, std::nextafter(1.0F, 2.0F)};
  REQUIRE(normalised(Norm::kUnitStd, rounding) == rounding);
}

TEST_CASE("no values need no statistics", "[normalisation]") {
  REQUIRE(normalised(Norm::kUnitStd, std::vector<float>{}).empty());
}
