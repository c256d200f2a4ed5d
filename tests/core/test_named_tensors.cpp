// SPDX-License-Identifier: Apache-2.0
// Values of all types are those of the same bits in test_safetensors.cpp, whose files are such
// tensors.
#include "core/named_tensors.h"

#include <array>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;

TEST_CASE("tensors are found by name, in the order in which they came") {
  const std::array<float, 3> values{1.5F, -2.0F, 3.0F};
  const std::array<int32_t, 2> numbers{7, -7};
  NamedTensors tensors("weights.file");
  tensors.add("z", {DType::kF32, {3}, std::as_bytes(std::span(values))});
  tensors.add("a", {DType::kI32, {1, 2}, std::as_bytes(std::span(numbers))});
  REQUIRE(tensors.names() == std::vector<std::string>{"z", "a"});
  REQUIRE(tensors.doubles("z") == std::vector<double>{1.5, -2.0, 3.0});
  REQUIRE(tensors.integers("a") == std::vector<int64_t>{7, -7});
  REQUIRE(tensors.at("a").num_elements() == 2);
  REQUIRE_THROWS_WITH(tensors.integers("z"), ContainsSubstring("has type F32"));
  REQUIRE_THROWS_WITH(tensors.at("y"), ContainsSubstring("'weights.file' has no tensor 'y'"));
  tensors.add("z", {DType::kF32, {1}, std::as_bytes(std::span(values)).first(4)});
  REQUIRE(tensors.names().size() == 2);
  REQUIRE(tensors.doubles("z") == std::vector<double>{1.5});
}
