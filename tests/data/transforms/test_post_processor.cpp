// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/post_processor.h"

#include <cmath>
#include <limits>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

const std::vector<std::string> kOutputs{"t", "tp", "cp"};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> processed(const PostRule& rule, std::vector<float> rows) {
  PostProcessor(kOutputs, {rule}).apply(rows);
  return rows;
}

}  // namespace

TEST_CASE("limits are kept", "[post_processor]") {
  REQUIRE(processed({.variables = {"tp"}, .method = PostMethod::kRelu}, {-1, -2, -3, 4, 5, 6}) ==
          std::vector<float>{-1, 0, -3, 4, 5, 6});
  REQUIRE(processed({.variables = {"t"}, .method = PostMethod::kHardtanh}, {-4, 0, 0}) ==
          std::vector<float>{-1, 0, 0});
  REQUIRE(processed({.variables = {"t"}, .method = PostMethod::kHardtanh01}, {-4, 0, 0}) ==
          std::vector<float>{0, 0, 0});
  REQUIRE(processed({.variables = {"t"}, .method = PostMethod::kThreshold, .value = 2.0},
                    {-4, 0, 0}) == std::vector<float>{2, 0, 0});
  REQUIRE(std::isnan(
      processed({.variables = {"t"}, .method = PostMethod::kHardtanh}, {kNan, 0, 0})[0]));
}

TEST_CASE("a variable follows another", "[post_processor]") {
  const PostRule zero{
      .variables = {"cp"}, .method = PostMethod::kConditionalZero, .value = 0.5, .from = "tp"};
  REQUIRE(processed(zero, {1, 0, 3, 4, 5, 6}) == std::vector<float>{1, 0, 0.5, 4, 5, 6});
  const PostRule nan{.variables = {"cp"}, .method = PostMethod::kConditionalNan, .from = "tp"};
  const std::vector<float> rows = processed(nan, {1, kNan, 3, 4, 5, 6});
  REQUIRE(std::isnan(rows[2]));
  REQUIRE(rows[5] == 6);
}

TEST_CASE("a rule sees the other variable as it was before the rule", "[post_processor]") {
  const PostRule rule{.variables = {"tp", "cp"},
                      .method = PostMethod::kConditionalZero,
                      .value = 5.0,
                      .from = "tp"};
  REQUIRE(processed(rule, {1, 0, 3, 4, 7, 6}) == std::vector<float>{1, 5, 5, 4, 7, 6});
}

TEST_CASE("rules apply in their order", "[post_processor]") {
  std::vector<float> row{0, -1, 7};
  PostProcessor(kOutputs,
                {{.variables = {"tp"}, .method = PostMethod::kRelu},
                 {.variables = {"cp"}, .method = PostMethod::kConditionalZero, .from = "tp"}})
      .apply(row);
  REQUIRE(row == std::vector<float>{0, 0, 0});
}

TEST_CASE("names that are not predicted and missing partners are refused", "[post_processor]") {
  REQUIRE_THROWS_AS(PostProcessor(kOutputs, {{.variables = {"lsm"}}}), ConfigError);
  const PostRule useless{.variables = {"cp"}, .method = PostMethod::kHardtanh, .value = 2.0};
  REQUIRE_THROWS_WITH(useless.validate("data.postprocessor.0"),
                      ContainsSubstring("'data.postprocessor.0.value'"));
  const PostRule strange{.variables = {"cp"}, .method = PostMethod::kThreshold, .from = "tp"};
  REQUIRE_THROWS_WITH(strange.validate("data.postprocessor.0"),
                      ContainsSubstring("'data.postprocessor.0.from'"));
  const PostRule lonely{.variables = {"cp"}, .method = PostMethod::kConditionalNan};
  REQUIRE_THROWS_AS(lonely.validate("data.postprocessor.0"), ConfigError);
}
