// SPDX-License-Identifier: Apache-2.0
#include "train/output_chain.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::train;

namespace {

const std::vector<std::string> kVariables{"lsm", "t", "tp"};

// t = 10 y + 270, tp by its square root.
OutputChain chain(bool with_rules) {
  data::Normaliser normaliser;
  normaliser.mul = {1.0f, 0.125f, 1.0f};
  normaliser.add = {0.0f, -32.0f, 0.0f};
  if (!with_rules) return {normaliser, {}, {}, {1, 2}};
  data::RemapRule root;
  root.variables = {"tp"};
  root.method = data::RemapMethod::kSqrt;
  const data::PostRule limit{
      .variables = {"t"}, .method = data::PostMethod::kThreshold, .value = 256.0};
  return {normaliser,
          data::Remapper(kVariables, {root}),
          data::PostProcessor({"t", "tp"}, {limit}),
          {1, 2}};
}

}  // namespace

TEST_CASE("predictions become physical in the order of the chain", "[output_chain]") {
  const at::Tensor y = at::tensor({1.0, 3.0, -5.0, 2.0}, at::kFloat).reshape({1, 2, 2});
  const at::Tensor plain = chain(false).physical(y), ruled = chain(true).physical(y);
  REQUIRE(at::equal(plain.flatten(), at::tensor({264.0, 3.0, 216.0, 2.0}, at::kFloat)));
  REQUIRE(at::equal(ruled.flatten(), at::tensor({264.0, 9.0, 256.0, 4.0}, at::kFloat)));
}

TEST_CASE("errors keep the units of normalised values", "[output_chain]") {
  const at::Tensor y = at::tensor({1.0, 3.0}, at::kDouble).reshape({1, 2});
  REQUIRE(chain(false).comparable(y).is_same(y));
  const at::Tensor moved = at::tensor({2.0, 4.0}, at::kDouble).reshape({1, 2});
  const at::Tensor error = chain(true).comparable(moved) - chain(true).comparable(y);
  REQUIRE(at::equal(error.flatten(), at::tensor({1.0, 7.0}, at::kDouble)));
}
