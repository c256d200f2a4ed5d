// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/imputer.h"

#include <cmath>
#include <limits>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const std::vector<std::string> kNames{"a", "b", "c"};
const Statistics kStatistics{.mean = {1.0, 2.0, 3.0},
                             .stdev = {4.0, 5.0, 6.0},
                             .minimum = {-1.0, -2.0, -3.0},
                             .maximum = {7.0, 8.0, 9.0}};

// A row of one cell at one time, filled by a rule for 'b'.
std::vector<float> filled(const ImputeRule& rule, std::vector<float> row) {
  const Imputer imputer(kNames, kStatistics, {rule});
  imputer.forward(row, {1, 1, 1, 3}, {});
  return row;
}

template <class E>
std::string error_of(const std::vector<ImputeRule>& rules, Statistics statistics = kStatistics) {
  try {
    const Imputer imputer(kNames, statistics, rules);
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

// NaN as a number that compares equal to itself.
std::vector<float> marked(std::vector<float> values) {
  for (float& value : values) {
    if (std::isnan(value)) value = -999.0f;
  }
  return values;
}

}  // namespace

TEST_CASE("each method fills NaN with its value and leaves numbers alone", "[imputer]") {
  using M = ImputeMethod;
  const std::vector<std::string> b{"b"};
  const auto value_of = [&](const ImputeRule& rule) {
    const std::vector<float> row = filled(rule, {10.0f, kNan, 30.0f});
    REQUIRE(row[0] == 10.0f);
    REQUIRE(row[2] == 30.0f);
    return row[1];
  };
  REQUIRE(value_of({b, M::kMean}) == 2.0f);
  REQUIRE(value_of({b, M::kMinimum}) == -2.0f);
  REQUIRE(value_of({b, M::kMaximum}) == 8.0f);
  REQUIRE(value_of({b, M::kStdev}) == 5.0f);
  REQUIRE(value_of({b, M::kConstant, -0.5}) == -0.5f);
  REQUIRE(value_of({b, M::kCopy, 0.0, "c"}) == 30.0f);
  REQUIRE(filled({b, M::kMean}, {1.0f, 20.0f, 3.0f})[1] == 20.0f);
  REQUIRE(std::isnan(filled({b, M::kMean}, {kNan, kNan, 3.0f})[0]));  // has no rule
}

TEST_CASE("all times are filled, only the first is remembered", "[imputer]") {
  const Imputer imputer(kNames, kStatistics, {{{"a", "b"}, ImputeMethod::kMean}});
  // Two times of two cells.
  std::vector<float> sample{kNan, 1,    kNan, 2,    2, 2,  // 'c' is not filled
                            3,    kNan, 3,    kNan, 4, 4};
  std::vector<uint8_t> mask(6, 9);
  imputer.forward(sample, {2, 1, 2, 3}, mask);
  REQUIRE(mask == std::vector<uint8_t>{1, 0, 0, 0, 0, 0});
  REQUIRE(marked(sample) == std::vector<float>{1, 1, -999, 2, 2, 2, 3, 2, 3, 1, 4, 4});
}

TEST_CASE("member 0 decides for all members", "[imputer]") {
  const Imputer imputer(kNames, kStatistics, {{{"b"}, ImputeMethod::kConstant, 7.0}});
  std::vector<float> sample{0, kNan, 0, 0, 5, 0};  // one cell, members 0 and 1
  std::vector<uint8_t> mask(3);
  imputer.forward(sample, {1, 2, 1, 3}, mask);
  REQUIRE(sample == std::vector<float>{0, 7, 0, 0, 7, 0});
  REQUIRE(mask == std::vector<uint8_t>{0, 1, 0});
}

TEST_CASE("without rules nothing is filled", "[imputer]") {
  REQUIRE(Imputer().empty());
  const Imputer imputer(kNames, kStatistics, {{{"b"}, ImputeMethod::kMean}});
  REQUIRE_FALSE(imputer.empty());
  REQUIRE(imputer.imputes(1));
  REQUIRE_FALSE(imputer.imputes(0));
}

TEST_CASE("impossible rules are refused with their path", "[imputer]") {
  using M = ImputeMethod;
  REQUIRE_THAT(error_of<ConfigError>({{{"z"}, M::kMean}}),
               ContainsSubstring("'data.imputer.0.variables': the dataset has no variable 'z'"));
  REQUIRE_THAT(error_of<ConfigError>({{{"a"}, M::kMean}, {{"a"}, M::kStdev}}),
               ContainsSubstring("'data.imputer.1.variables': 'a' is filled twice"));
  REQUIRE_THAT(error_of<ConfigError>({{{"a"}, M::kCopy, 0.0, "z"}}),
               ContainsSubstring("'data.imputer.0.from'"));
  Statistics broken = kStatistics;
  broken.mean[0] = std::numeric_limits<double>::quiet_NaN();
  REQUIRE_THAT(error_of<DataError>({{{"a"}, M::kMean}}, broken),
               ContainsSubstring("the mean of variable 'a'"));
  const auto invalid = [](const ImputeRule& rule) {
    REQUIRE_THROWS_AS(rule.validate("data.imputer.0"), ConfigError);
  };
  invalid({{}, M::kMean});
  invalid({{"a"}, M::kCopy});
  invalid({{"a"}, M::kMean, 0.0, "b"});
  invalid({{"a"}, M::kMean, 1.5});
  invalid({{"a"}, M::kCopy, 1.5, "b"});
}

TEST_CASE("NaN return where the first time had them, in what was read as input", "[imputer]") {
  const VariableTable variables(kNames, {.forcing = {"a"}, .diagnostic = {"c"}});
  const std::vector<uint8_t> first_time_nan{1, 1, 1, 0, 1, 0};  // two cells
  // Model outputs b and c, two times.
  std::vector<float> fields{1, 2, 3, 4, 5, 6, 7, 8};
  restore_nan(fields, {2, 1, 2, 2}, variables.output_columns(), first_time_nan, variables);
  REQUIRE(marked(fields) == std::vector<float>{-999, 2, -999, 4, -999, 6, -999, 8});
  // All variables, two members.
  std::vector<float> all(12, 1.0f);
  const std::vector<int64_t> columns{0, 1, 2};
  restore_nan(all, {1, 2, 2, 3}, columns, first_time_nan, variables);
  REQUIRE(marked(all) == std::vector<float>{-999, -999, 1, 1, -999, 1, -999, -999, 1, 1, -999, 1});
}

TEST_CASE("the first NaN is found", "[imputer]") {
  REQUIRE(first_nan(std::vector<float>{1, 2, 3, 4, kNan, kNan}) == 4);
  REQUIRE(first_nan(std::vector<float>{1, 2, 3}) == -1);
  REQUIRE(first_nan(std::vector<float>{}) == -1);
}
