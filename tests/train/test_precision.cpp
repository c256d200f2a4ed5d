// SPDX-License-Identifier: Apache-2.0
#include "train/precision.h"

#include <ATen/ATen.h>

#include "tests/support/catch.h"
#include "tests/support/tensors.h"

using namespace aifs::train;

namespace {

at::ScalarType product_type() {
  const at::Tensor x = at::ones({2, 2}, at::kFloat);
  return at::mm(x, x).scalar_type();
}

}  // namespace

TEST_CASE("matrix products are short within the scope only", "[precision]") {
  const at::Device cpu(at::kCPU);
  REQUIRE(product_type() == at::kFloat);
  {
    const AutocastScope scope(Precision::kBf16Mixed, cpu);
    REQUIRE(product_type() == at::kBFloat16);
    {
      const NoAutocastScope off(cpu);
      REQUIRE(product_type() == at::kFloat);
    }
    REQUIRE(product_type() == at::kBFloat16);
  }
  {
    const AutocastScope scope(Precision::kFp16Mixed, cpu);
    REQUIRE(product_type() == at::kHalf);
  }
  const AutocastScope scope(Precision::kFp32, cpu);
  REQUIRE(product_type() == at::kFloat);
}

TEST_CASE("gradients of weights are fp32", "[precision]") {
  const at::Tensor w = at::ones({3, 3}, at::kFloat).set_requires_grad(true);
  at::Tensor loss;
  {
    const AutocastScope scope(Precision::kBf16Mixed, at::kCPU);
    loss = at::linear(at::ones({2, 3}, at::kFloat), w).to(at::kFloat).sum();
  }
  loss.backward();
  REQUIRE(w.grad().scalar_type() == at::kFloat);
  REQUIRE(at::equal(w.grad(), at::full({3, 3}, 2.0, at::kFloat)));
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
