// SPDX-License-Identifier: Apache-2.0
#include "data/remapper.h"

#include <cmath>
#include <limits>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

// A round trip in fp32 costs a few units in the last place, more where the map is steep.
constexpr float kRoundTrip = 2e-6f;

RemapRule rule(RemapMethod method) {
  RemapRule r;
  r.variables = {"a"};
  r.method = method;
  return r;
}

}  // namespace

TEST_CASE("the inverse of a map undoes it", "[remapper]") {
  RemapRule power = rule(RemapMethod::kPower), tangent = power, boxcox = rule(RemapMethod::kBoxCox);
  tangent.linear_above_one = true;
  RemapRule logarithm = boxcox, affine = rule(RemapMethod::kAffine);
  logarithm.exponent = 0.0;
  affine.scale = 2.5;
  affine.shift = -1.0;
  for (const RemapRule& r :
       {rule(RemapMethod::kLog1p), rule(RemapMethod::kSqrt), power, tangent, boxcox, logarithm,
        rule(RemapMethod::kAtanh), rule(RemapMethod::kAsinh), affine}) {
    const float largest = r.method == RemapMethod::kAtanh ? 0.9f : 3.0f;
    for (float x = 0.05f; x < largest; x += 0.1f) {
      REQUIRE(std::abs(r.inverse(r.forward(x)) - x) <= kRoundTrip * std::max(1.0f, x));
    }
  }
}

TEST_CASE("maps have their closed forms", "[remapper]") {
  REQUIRE(rule(RemapMethod::kSqrt).forward(9.0f) == 3.0f);
  REQUIRE(rule(RemapMethod::kBoxCox).forward(4.0f) == 2.0f);
  RemapRule clipped = rule(RemapMethod::kBoxCox);
  clipped.clip_negative = true;
  REQUIRE(clipped.forward(-3.0f) == -2.0f);
  RemapRule tangent = rule(RemapMethod::kPower);
  tangent.exponent = 0.25;
  tangent.linear_above_one = true;
  REQUIRE(tangent.forward(5.0f) == 2.0f);
  RemapRule displace = rule(RemapMethod::kDisplace);
  displace.lower_target = -0.5;
  displace.epsilon = 0.01;
  REQUIRE(displace.forward(0.005f) == -0.5f);
  REQUIRE(displace.forward(0.5f) == 0.5f);
  REQUIRE(displace.inverse(-0.5f) == 0.0f);
}

TEST_CASE("values outside the domain are named, or clipped on request", "[remapper]") {
  const Remapper log({"a", "b"}, {rule(RemapMethod::kLog1p)});
  std::vector<float> rows{0.0f, -5.0f, -2.0f, 1.0f};
  REQUIRE_THROWS_WITH(log.forward(rows),
                      ContainsSubstring("variable 'a'") && ContainsSubstring("-2"));
  RemapRule clipped = rule(RemapMethod::kPower);
  REQUIRE_THROWS_AS(clipped.forward(-1.0f), DataError);
  clipped.clip_negative = true;
  REQUIRE(clipped.forward(-1.0f) == 0.0f);
  REQUIRE(std::isnan(clipped.forward(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("only named columns are mapped, wherever they stand", "[remapper]") {
  RemapRule r = rule(RemapMethod::kAffine);
  r.variables = {"b"};
  r.scale = 10.0;
  const Remapper remapper({"a", "b", "c"}, {r});
  std::vector<float> rows{1, 2, 3, 4, 5, 6};
  remapper.forward(rows);
  REQUIRE(rows == std::vector<float>{1, 20, 3, 4, 50, 6});
  std::vector<float> outputs{7, 20, 8, 50};
  const std::vector<int64_t> columns{2, 1};
  remapper.inverse(outputs, columns);
  REQUIRE(outputs == std::vector<float>{7, 2, 8, 5});
}

TEST_CASE("unknown and repeated names are refused", "[remapper]") {
  RemapRule unknown = rule(RemapMethod::kSqrt);
  unknown.variables = {"x"};
  REQUIRE_THROWS_AS(Remapper({"a"}, {unknown}), ConfigError);
  REQUIRE_THROWS_AS(Remapper({"a"}, {rule(RemapMethod::kSqrt), rule(RemapMethod::kLog1p)}),
                    ConfigError);
  RemapRule flat = rule(RemapMethod::kAffine);
  flat.scale = 0.0;
  REQUIRE_THROWS_AS(flat.validate("data.remapper.0"), ConfigError);
}
