// SPDX-License-Identifier: Apache-2.0
#include "model/layers/bounding.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::random_tensor;

namespace {

using Kind = BoundingKind;

const OutputVariables kOutputs{
    .names = {"a", "b", "c", "d"}, .mean = {1.0, 2.0, 3.0, 4.0}, .stdev = {2.0, 4.0, 8.0, 16.0}};

at::Tensor bounded(const BoundingOptions& options, const at::Tensor& y) {
  ParameterSet set(at::kDouble, 1);
  return Bounding(ParameterScope(set), options, kOutputs, "model.bounding.0").forward(y);
}

at::Tensor row(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble);
}

std::vector<double> list(const at::Tensor& x) {
  return {x.const_data_ptr<double>(), x.const_data_ptr<double>() + x.numel()};
}

std::string error_of(const BoundingOptions& options) {
  try {
    bounded(options, row({0, 0, 0, 0}));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

double leaky(double x, double low, double high) {
  if (x < low) return low + 0.01 * (x - low);
  if (x > high) return high + 0.01 * (x - high);
  return x;
}

// The value of one column by its definition; t: normalised threshold.
double by_definition(const BoundingOptions& o, double x, double total, double t) {
  switch (o.kind) {
    case Kind::kRelu:
      return std::max(x, 0.0);
    case Kind::kLeakyRelu:
      return x >= 0 ? x : 0.01 * x;
    case Kind::kHardtanh:
      return std::clamp(x, o.min_val, o.max_val);
    case Kind::kLeakyHardtanh:
      return leaky(x, o.min_val, o.max_val);
    case Kind::kFraction:
      return std::clamp(x, o.min_val, o.max_val) * total;
    case Kind::kLeakyFraction:
      return leaky(x, o.min_val, o.max_val) * total;
    case Kind::kNormalizedRelu:
      return std::max(x - t, 0.0) + t;
    case Kind::kNormalizedLeakyRelu:
      return (x >= t ? x - t : 0.01 * (x - t)) + t;
  }
  return x;
}

// Options of every kind, on columns 'd' and 'b'.
std::vector<BoundingOptions> one_of_each() {
  std::vector<BoundingOptions> all;
  for (const auto& [kind, name] : EnumNames<Kind>::table) {
    BoundingOptions o{.kind = kind, .variables = {"d", "b"}, .min_val = -0.4, .max_val = 0.7};
    if (kind == Kind::kFraction || kind == Kind::kLeakyFraction) o.total_var = "a";
    if (kind == Kind::kNormalizedRelu || kind == Kind::kNormalizedLeakyRelu) {
      o.thresholds = {8.0, 1.0};
      o.normalizer = {"std", "mean-std"};
    }
    all.push_back(o);
  }
  return all;
}

}  // namespace

TEST_CASE("every kind follows its formula on its columns and leaves the others", "[bounding]") {
  const at::Tensor y = random_tensor({30, 4}, 1);
  for (const BoundingOptions& options : one_of_each()) {
    INFO(enum_name(options.kind));
    const at::Tensor z = bounded(options, y);
    const auto in = y.accessor<double, 2>(), out = z.accessor<double, 2>();
    for (int64_t i = 0; i < 30; ++i) {
      REQUIRE(out[i][0] == in[i][0]);
      REQUIRE(out[i][2] == in[i][2]);
      // Thresholds: 8 / 16 for 'd' (std), (1 - 2) / 4 for 'b' (mean-std).
      const double d = by_definition(options, in[i][3], in[i][0], 0.5);
      const double b = by_definition(options, in[i][1], in[i][0], -0.25);
      REQUIRE(out[i][3] == Approx(d).epsilon(1e-14).margin(1e-14));
      REQUIRE(out[i][1] == Approx(b).epsilon(1e-14).margin(1e-14));
    }
  }
}

TEST_CASE("a fraction multiplies its limited value by the total", "[bounding]") {
  const BoundingOptions options{.kind = Kind::kFraction, .variables = {"a", "b"}, .total_var = "c"};
  REQUIRE(list(bounded(options, row({-1, 2, 3, 9}))) == std::vector<double>{0, 3, 3, 9});
  REQUIRE(list(bounded(options, row({4, -5, 6, 9}))) == std::vector<double>{6, 0, 6, 9});
  REQUIRE(list(bounded(options, row({0.5, 0.5, 0.5, 9}))) ==
          std::vector<double>{0.25, 0.25, 0.5, 9});
}

TEST_CASE("boundings act one after another on what the earlier ones left", "[bounding]") {
  const BoundingOptions positive{.kind = Kind::kRelu, .variables = {"c"}};
  const BoundingOptions part{.kind = Kind::kFraction, .variables = {"a"}, .total_var = "c"};
  const at::Tensor y = row({0.5, 0, -2, 0});
  REQUIRE(list(bounded(part, bounded(positive, y))) == std::vector<double>{0, 0, 0, 0});
  REQUIRE(list(bounded(positive, bounded(part, y))) == std::vector<double>{-1, 0, 0, 0});
}

TEST_CASE("thresholds are a buffer in configuration order", "[bounding]") {
  ParameterSet set(at::kDouble, 1);
  const Bounding bounding(ParameterScope(set), one_of_each()[6], kOutputs, "b");
  REQUIRE(list(set.at("norm_min_val").tensor) == std::vector<double>{0.5, -0.25});
  REQUIRE_FALSE(set.at("norm_min_val").trainable);
}

TEST_CASE("gradients are central differences away from the corners", "[bounding]") {
  for (const BoundingOptions& options : one_of_each()) {
    INFO(enum_name(options.kind));
    const auto function = [&](const std::vector<at::Tensor>& in) {
      return bounded(options, in[0]).tanh();
    };
    REQUIRE(test::gradient_error(function, {random_tensor({6, 4}, 2)}) <=
            test::gradient_tolerance());
  }
}

TEST_CASE("in place they give the same, and the slope of each column", "[bounding]") {
  const at::Tensor y = random_tensor({30, 4}, 1), g = random_tensor({30, 4}, 3);
  for (const BoundingOptions& options : one_of_each()) {
    INFO(enum_name(options.kind));
    ParameterSet set(at::kDouble, 1);
    const Bounding bounding(ParameterScope(set), options, kOutputs, "b");
    if (!bounding.is_elementwise()) {
      REQUIRE_THROWS_AS(bounding.limit_(y, true), Error);
      continue;
    }
    const at::Tensor x = y.clone().set_requires_grad(true), expected = bounding.forward(x);
    expected.backward(g);
    const at::Tensor got = y.clone(), again = y.clone();
    const at::Tensor slope = bounding.limit_(got, true);
    REQUIRE_FALSE(bounding.limit_(again, false).defined());
    REQUIRE(at::equal(got, expected));
    REQUIRE(at::equal(again, expected));
    REQUIRE(at::equal(
        g.index_copy(-1, bounding.columns(), g.index_select(-1, bounding.columns()) * slope),
        x.grad()));
  }
}

TEST_CASE("boundings are independent that share no column and need no other", "[bounding]") {
  ParameterSet set(at::kDouble, 1);
  const ParameterScope scope(set);
  const Bounding b(scope, {.kind = Kind::kRelu, .variables = {"b"}}, kOutputs, "b");
  const Bounding bd(scope, {.kind = Kind::kRelu, .variables = {"d", "b"}}, kOutputs, "b");
  const Bounding c(scope, {.kind = Kind::kRelu, .variables = {"c"}}, kOutputs, "b");
  const Bounding part(scope, {.kind = Kind::kFraction, .variables = {"a"}, .total_var = "c"},
                      kOutputs, "b");
  REQUIRE(independent({}));
  REQUIRE(independent({bd, c}));
  REQUIRE_FALSE(independent({b, bd}));
  REQUIRE_FALSE(independent({part}));
}

TEST_CASE("impossible boundings are refused with their path", "[bounding]") {
  REQUIRE_THAT(error_of({.kind = Kind::kRelu, .variables = {"e"}}),
               ContainsSubstring("'model.bounding.0.variables': 'e' is not a variable"));
  REQUIRE_THAT(error_of({.kind = Kind::kRelu}), ContainsSubstring("names no variable"));
  REQUIRE_THAT(error_of({.kind = Kind::kFraction, .variables = {"a"}}),
               ContainsSubstring("total_var"));
  REQUIRE_THAT(error_of({.kind = Kind::kRelu, .variables = {"a"}, .total_var = "b"}),
               ContainsSubstring("total_var"));
  REQUIRE_THAT(error_of({.kind = Kind::kHardtanh, .variables = {"a"}, .min_val = 2, .max_val = 1}),
               ContainsSubstring("min_val"));
  REQUIRE_THAT(error_of({.kind = Kind::kNormalizedRelu, .variables = {"a"}}),
               ContainsSubstring("thresholds"));
  REQUIRE_THAT(error_of({.kind = Kind::kNormalizedRelu,
                         .variables = {"a"},
                         .thresholds = {1.0},
                         .normalizer = {"max"}}),
               ContainsSubstring("got 'max'"));
}
