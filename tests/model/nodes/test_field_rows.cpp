// SPDX-License-Identifier: Apache-2.0
#include "model/nodes/field_rows.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::random_tensor;

TEST_CASE("rows hold the times and variables of their node, then what is beside", "[field_rows]") {
  const at::Tensor fields = random_tensor({2, 3, 2, 4, 5}, 1), beside = random_tensor({16, 2}, 2);
  const at::Tensor rows = field_rows(fields, beside);
  REQUIRE(rows.sizes() == at::IntArrayRef{16, 17});
  REQUIRE(rows[13][8].item<double>() == fields[1][1][1][1][3].item<double>());
  REQUIRE(at::equal(rows, at::cat({fields.permute({0, 2, 3, 1, 4}).reshape({16, 15}), beside}, 1)));
  const at::Tensor narrow = beside.to(at::kBFloat16);
  REQUIRE(at::equal(field_rows(fields, narrow),
                    at::cat({rows.narrow(1, 0, 15), beside}, 1).to(at::kBFloat16)));
  REQUIRE_THROWS_AS(field_rows(fields, beside.narrow(0, 0, 8)), Error);
}

TEST_CASE("gradients of rows go back to fields and to what is beside", "[field_rows]") {
  const auto function = [](const std::vector<at::Tensor>& in) {
    return field_rows(in[0], in[1]).tanh();
  };
  REQUIRE(test::gradient_error(function, {random_tensor({2, 3, 1, 4, 2}, 3),
                                          random_tensor({8, 3}, 4)}) <= test::gradient_tolerance());
  const at::Tensor fields =
      random_tensor({1, 2, 1, 4, 3}, 5).to(at::kFloat).set_requires_grad(true);
  field_rows(fields, random_tensor({4, 1}, 6).to(at::kBFloat16)).sum().backward();
  REQUIRE(at::equal(fields.grad(), at::ones_like(fields)));
}
