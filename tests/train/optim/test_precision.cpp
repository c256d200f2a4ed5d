// SPDX-License-Identifier: Apache-2.0
#include "train/optim/precision.h"

#include <ATen/core/Tensor.h>

#include "tests/support/catch.h"

using namespace aifs::train;

TEST_CASE("weights are never narrower than fp32", "[precision]") {
  for (const auto& [precision, name] : aifs::EnumNames<Precision>::table) {
    INFO(name);
    REQUIRE(weight_type(precision) == (precision == Precision::kFp64 ? at::kDouble : at::kFloat));
  }
  REQUIRE(activation_type(Precision::kBf16Mixed) == at::kBFloat16);
  REQUIRE(activation_type(Precision::kFp16Mixed) == at::kHalf);
  REQUIRE(activation_type(Precision::kTf32) == at::kFloat);
  REQUIRE(activation_type(Precision::kFp64) == at::kDouble);
}

TEST_CASE("the loss scale halves on overflow and doubles after 2000 good steps", "[precision]") {
  LossScale scale(Precision::kFp16Mixed);
  REQUIRE(scale.value() == 65536.0);
  scale.update(false);
  REQUIRE(scale.value() == 32768.0);
  for (int64_t i = 0; i < LossScale::kInterval - 1; ++i)
    scale.update(true);
  REQUIRE(scale.value() == 32768.0);
  scale.update(true);
  REQUIRE(scale.value() == 65536.0);
  REQUIRE(scale.good_steps() == 0);
}

TEST_CASE("there is no loss scale without fp16", "[precision]") {
  LossScale scale(Precision::kBf16Mixed);
  scale.update(false);
  REQUIRE(scale.value() == 1.0);
}

TEST_CASE("the table names each operation once", "[precision]") {
  for (size_t i = 0; i < kPrecisionTable.size(); ++i) {
    for (size_t j = 0; j < i; ++j)
      REQUIRE(std::string(kPrecisionTable[i].operation) != kPrecisionTable[j].operation);
  }
}
