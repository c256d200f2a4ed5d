// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/normaliser.h"

#include <cmath>
#include <limits>

#include "core/check.h"
#include "core/rng.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

const std::vector<std::string> kNames{"a", "b", "c"};

Statistics some_statistics() {
  return {.mean = {2.0, -3.0, 0.1},
          .stdev = {4.0, 0.3, 7.0},
          .minimum = {-1.0, -5.0, -20.0},
          .maximum = {7.0, 2.0, 30.0}};
}

Normaliser make(const NormaliserOptions& options) {
  Statistics statistics = some_statistics();
  return Normaliser::create(kNames, statistics, options);
}

template <class E>
std::string error_of(const NormaliserOptions& options, Statistics statistics = some_statistics()) {
  try {
    Normaliser::create(kNames, statistics, options);
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("every method is its affine map, rounded once from double", "[normaliser]") {
  const auto tables = [](NormMethod method) { return make({.default_method = method}); };
  const Statistics s = some_statistics();
  for (size_t v = 0; v < kNames.size(); ++v) {
    const double range = s.maximum[v] - s.minimum[v];
    REQUIRE(tables(NormMethod::kMeanStd).mul[v] == static_cast<float>(1.0 / s.stdev[v]));
    REQUIRE(tables(NormMethod::kMeanStd).add[v] == static_cast<float>(-s.mean[v] / s.stdev[v]));
    REQUIRE(tables(NormMethod::kStd).mul[v] == static_cast<float>(1.0 / s.stdev[v]));
    REQUIRE(tables(NormMethod::kStd).add[v] == 0.0f);
    REQUIRE(tables(NormMethod::kMinMax).mul[v] == static_cast<float>(1.0 / range));
    REQUIRE(tables(NormMethod::kMinMax).add[v] == static_cast<float>(-s.minimum[v] / range));
    REQUIRE(tables(NormMethod::kMax).mul[v] == static_cast<float>(1.0 / s.maximum[v]));
    REQUIRE(tables(NormMethod::kMax).add[v] == 0.0f);
    REQUIRE(tables(NormMethod::kNone).mul[v] == 1.0f);
    REQUIRE(tables(NormMethod::kNone).add[v] == 0.0f);
  }
}

TEST_CASE("variables named under a method leave the default", "[normaliser]") {
  const Normaliser tables = make({.std = {"c"}, .none = {"a"}});
  REQUIRE(tables.mul ==
          std::vector<float>{1.0f, static_cast<float>(1.0 / 0.3), static_cast<float>(1.0 / 7.0)});
  REQUIRE(tables.add == std::vector<float>{0.0f, static_cast<float>(3.0 / 0.3), 0.0f});
}

TEST_CASE("the product is rounded before the sum", "[normaliser]") {
  const Normaliser tables = make({});
  const CounterRng rng(3);
  int fused_differs = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const auto x = static_cast<float>(rng.normal(i));
    std::vector<float> row{x, x, x};
    tables.forward(row);
    const volatile float product = x * tables.mul[1];
    REQUIRE(row[1] == product + tables.add[1]);
    fused_differs += std::fma(x, tables.mul[1], tables.add[1]) != row[1] ? 1 : 0;
  }
  REQUIRE(fused_differs > 0);  // or the test would prove nothing
}

TEST_CASE("the inverse gives the value back", "[normaliser]") {
  const Normaliser tables = make({.min_max = {"b"}, .max = {"c"}});
  const CounterRng rng(4);
  const Statistics s = some_statistics();
  for (uint64_t i = 0; i < 200; ++i) {
    std::vector<float> row;
    for (size_t v = 0; v < 3; ++v)
      row.push_back(static_cast<float>(s.mean[v] + s.stdev[v] * rng.normal(3 * i + v)));
    std::vector<float> there = row;
    tables.forward(there);
    for (size_t v = 0; v < 3; ++v) {
      // Four roundings of numbers that are at most a few times |x| + |offset|.
      const double scale = std::abs(row[v]) + std::abs(tables.add[v] / tables.mul[v]);
      REQUIRE(std::abs(tables.inverse(there[v], static_cast<int64_t>(v)) - row[v]) <=
              4 * std::numeric_limits<float>::epsilon() * scale);
    }
  }
}

TEST_CASE("statistics that float32 cannot divide by are refused", "[normaliser]") {
  for (const double stdev : {1e-40, 1e46}) {  // the factor would be infinite, or zero
    Statistics statistics = some_statistics();
    statistics.stdev[1] = stdev;
    REQUIRE_THROWS_WITH(Normaliser::create(kNames, statistics, {}),
                        ContainsSubstring("'" + kNames[1] + "'"));
  }
}

TEST_CASE("remap takes the original statistics of another variable, also in a ring",
          "[normaliser]") {
  Statistics statistics = some_statistics();
  const Normaliser tables =
      Normaliser::create(kNames, statistics, {.remap = {{"a", "b"}, {"b", "a"}}});
  const Normaliser plain = make({});
  REQUIRE(tables.mul == std::vector<float>{plain.mul[1], plain.mul[0], plain.mul[2]});
  REQUIRE(tables.add == std::vector<float>{plain.add[1], plain.add[0], plain.add[2]});
  REQUIRE(statistics.mean == std::vector<double>{-3.0, 2.0, 0.1});
  REQUIRE(statistics.maximum == std::vector<double>{2.0, 7.0, 30.0});
}

TEST_CASE("unknown and repeated names are refused with their path", "[normaliser]") {
  REQUIRE_THAT(error_of<ConfigError>({.std = {"d"}}),
               ContainsSubstring("'data.normalizer.std': the dataset has no variable 'd'"));
  REQUIRE_THAT(error_of<ConfigError>({.std = {"a"}, .max = {"a"}}),
               ContainsSubstring("'data.normalizer.max': 'a' is named twice"));
  REQUIRE_THAT(error_of<ConfigError>({.remap = {{"a", "z"}}}),
               ContainsSubstring("'data.normalizer.remap'"));
}

TEST_CASE("statistics that would spoil the fields are refused where they are used",
          "[normaliser]") {
  Statistics flat = some_statistics();
  flat.stdev[1] = 0.0;
  REQUIRE_THAT(error_of<DataError>({}, flat), ContainsSubstring("variable 'b' give stdev = 0"));
  REQUIRE(error_of<DataError>({.none = {"b"}}, flat) == "no error");
  Statistics negative = some_statistics();
  negative.stdev[1] = -2.0;
  REQUIRE_THAT(error_of<DataError>({}, negative),
               ContainsSubstring("variable 'b' give a negative stdev = -2"));
  flat.mean[0] = std::numeric_limits<double>::quiet_NaN();
  REQUIRE_THAT(error_of<DataError>({.none = {"b"}}, flat), ContainsSubstring("'a' give mean"));
  Statistics equal = some_statistics();
  equal.maximum[2] = equal.minimum[2];
  REQUIRE_THAT(error_of<DataError>({.min_max = {"c"}}, equal),
               ContainsSubstring("maximum - minimum = 0"));
}
