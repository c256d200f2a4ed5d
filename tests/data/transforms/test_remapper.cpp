// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/remapper.h"

#include <cmath>
#include <functional>
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
        rule(RemapMethod::kAtanh), rule(RemapMethod::kAsinh), affine, rule(RemapMethod::kNone)}) {
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
}

TEST_CASE("each map and its inverse follow their formulas in double precision", "[remapper]") {
  using Formula = std::function<double(double)>;
  struct Case {
    RemapRule rule;
    Formula forward, inverse;
  };
  const auto with = [](RemapMethod method, auto&& change) {
    RemapRule r = rule(method);
    change(r);
    return r;
  };
  const double tanh2 = std::tanh(2.0);
  const auto power_case = [&](double e, const RemapRule& r) {
    return Case{r, [e](double x) { return std::pow(x, e); },
                [e](double y) { return std::pow(std::max(y, 0.0), 1.0 / e); }};
  };
  const auto boxcox_case = [&](double e, const RemapRule& r) {
    return Case{r, [e](double x) { return (std::pow(x, e) - 1.0) / e; },
                [e](double y) { return std::pow(std::max(e * y + 1.0, 0.0), 1.0 / e); }};
  };
  const std::vector<Case> cases{
      {rule(RemapMethod::kLog1p), [](double x) { return std::log1p(x); },
       [](double y) { return std::expm1(y); }},
      power_case(0.5, rule(RemapMethod::kSqrt)),
      power_case(0.33, rule(RemapMethod::kPower)),  // the exponent that nobody names
      power_case(0.4, with(RemapMethod::kPower, [](RemapRule& r) { r.exponent = 0.4; })),
      {with(RemapMethod::kPower, [](RemapRule& r) { r.linear_above_one = true; }),
       [](double x) { return x > 1.0 ? 0.33 * x + 1.0 - 0.33 : std::pow(x, 0.33); },
       [](double y) { return y > 1.0 ? (y - 1.0 + 0.33) / 0.33 : std::pow(y, 1.0 / 0.33); }},
      boxcox_case(0.5, rule(RemapMethod::kBoxCox)),
      boxcox_case(0.3, with(RemapMethod::kBoxCox, [](RemapRule& r) { r.exponent = 0.3; })),
      {with(RemapMethod::kBoxCox, [](RemapRule& r) { r.exponent = 0.0; }),
       [](double x) { return std::log(x); }, [](double y) { return std::exp(y); }},
      {rule(RemapMethod::kAtanh),
       [=](double x) { return std::atanh(tanh2 * (2.0 * x - 1.0)) / 2.0; },
       [=](double y) { return std::clamp((std::tanh(2.0 * y) / tanh2 + 1.0) / 2.0, 0.0, 1.0); }},
      {with(RemapMethod::kAsinh, [](RemapRule& r) { r.c = 3.0; }),
       [](double x) { return std::asinh(3.0 * x); }, [](double y) { return std::sinh(y) / 3.0; }},
      {with(RemapMethod::kAffine,
            [](RemapRule& r) {
              r.scale = 2.5;
              r.shift = -1.0;
            }),
       [](double x) { return 2.5 * x - 1.0; }, [](double y) { return (y + 1.0) / 2.5; }},
      {rule(RemapMethod::kNone), [](double x) { return x; }, [](double y) { return y; }}};
  // At most six roundings of numbers of the size of argument, result, 1, or what a change of the
  // argument by its own size makes of the result.
  const auto near = [](float got, const Formula& formula, double x) {
    const double step = 1e-6, value = formula(x);
    const double slope = (formula(x * (1 + step)) - formula(x * (1 - step))) / (2 * step);
    const double scale = std::abs(x) + std::abs(value) + std::abs(slope) + 1.0;
    return std::abs(static_cast<double>(got) - value) <=
           6 * static_cast<double>(std::numeric_limits<float>::epsilon()) * scale;
  };
  for (const Case& c : cases) {
    const float most = c.rule.method == RemapMethod::kAtanh ? 0.98f : 3.0f;
    for (float x = 0.02f; x < most; x += 0.0371f) {
      INFO(enum_name(c.rule.method) << " at " << x);
      REQUIRE(near(c.rule.forward(x), c.forward, static_cast<double>(x)));
      const auto y = static_cast<float>(c.forward(static_cast<double>(x)));
      REQUIRE(near(c.rule.inverse(y), c.inverse, static_cast<double>(y)));
    }
  }
}

TEST_CASE("ends of a range move outside and come back, one of them or both", "[remapper]") {
  RemapRule both = rule(RemapMethod::kDisplace);
  both.lower = 0.2;
  both.lower_target = -0.3;
  both.upper = 0.8;
  both.upper_target = 1.4;
  both.epsilon = 0.01;
  both.validate("r");
  REQUIRE(both.forward(0.0f) == -0.3f);
  REQUIRE(both.forward(0.205f) == -0.3f);
  REQUIRE(both.forward(0.5f) == 0.5f);
  REQUIRE(both.forward(0.795f) == 1.4f);
  REQUIRE(both.inverse(-0.3f) == 0.2f);
  REQUIRE(both.inverse(0.5f) == 0.5f);
  REQUIRE(both.inverse(1.4f) == 0.8f);
  RemapRule low = rule(RemapMethod::kDisplace);  // of rain, which has no upper end
  low.lower = 0.0;
  low.lower_target = -0.5;
  low.validate("r");
  REQUIRE(low.forward(0.0f) == -0.5f);
  REQUIRE(low.forward(7.0f) == 7.0f);
  REQUIRE(low.inverse(-0.1f) == 0.0f);
  REQUIRE(low.inverse(7.0f) == 7.0f);
  RemapRule high = rule(RemapMethod::kDisplace);
  high.upper = 1.0;
  high.upper_target = 1.5;
  high.validate("r");
  REQUIRE(high.forward(1.0f) == 1.5f);
  REQUIRE(high.inverse(-7.0f) == -7.0f);
  REQUIRE(high.inverse(1.2f) == 1.0f);
  REQUIRE(std::isnan(both.inverse(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("method none leaves a variable alone", "[remapper]") {
  const Remapper remapper({"a", "b"}, {rule(RemapMethod::kNone)});
  REQUIRE(remapper.empty());
  REQUIRE(remapper.rule_of(0) == nullptr);
  REQUIRE_THROWS_AS(Remapper({"a"}, {rule(RemapMethod::kNone), rule(RemapMethod::kLog1p)}),
                    ConfigError);
}

TEST_CASE("options that a method does not have, and ends without targets, are refused",
          "[remapper]") {
  const auto refused = [](const char* key, RemapMethod method, auto&& change) {
    RemapRule r = rule(method);
    change(r);
    REQUIRE_THROWS_WITH(r.validate("data.remapper.0"),
                        ContainsSubstring(concat("'data.remapper.0.", key, "'")));
  };
  using M = RemapMethod;
  refused("exponent", M::kSqrt, [](RemapRule& r) { r.exponent = 0.25; });
  refused("clip_negative", M::kSqrt, [](RemapRule& r) { r.clip_negative = true; });
  refused("linear_above_one", M::kBoxCox, [](RemapRule& r) { r.linear_above_one = true; });
  refused("rho", M::kAsinh, [](RemapRule& r) { r.rho = 1.0; });
  refused("c", M::kAtanh, [](RemapRule& r) { r.c = 3.0; });
  refused("scale", M::kNone, [](RemapRule& r) { r.scale = 3.0; });
  refused("epsilon", M::kAffine, [](RemapRule& r) { r.epsilon = 3.0; });
  refused("exponent", M::kPower, [](RemapRule& r) { r.exponent = 0.0; });
  refused("lower", M::kDisplace, [](RemapRule&) {});
  refused("lower_target", M::kDisplace, [](RemapRule& r) { r.lower = 0.0; });
  refused("upper_target", M::kDisplace, [](RemapRule& r) {
    r.lower = 0.0;
    r.lower_target = -1.0;
    r.upper_target = 2.0;
  });
  refused("upper_target", M::kDisplace, [](RemapRule& r) {
    r.upper = 1.0;
    r.upper_target = 1.0;
  });
  refused("upper", M::kDisplace, [](RemapRule& r) {
    r.lower = 1.0;
    r.lower_target = 0.0;
    r.upper = 0.5;
    r.upper_target = 2.0;
  });
  RemapRule fine = rule(M::kBoxCox);
  fine.exponent = 0.0;
  fine.validate("data.remapper.0");
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
