// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/sparse_product.h"

#include <ATen/ATen.h>

#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

using namespace aifs::model;
using aifs::test::max_difference;
using aifs::test::random_tensor;

namespace {

constexpr double kRounding = 1e-14;

// Rows 0 and 2 in no order, row 1 empty, one place twice.
SparseMatrix example() {
  return SparseMatrix::create(at::tensor({2, 0, 2, 0, 2}, at::kLong),
                              at::tensor({1, 3, 0, 2, 1}, at::kLong),
                              at::tensor({1., 2., 3., -1., 5.}).to(at::kDouble), 3, 4);
}

at::Tensor dense() {
  return at::tensor({0., 0., -1., 2., 0., 0., 0., 0., 3., 6., 0., 0.}, at::kDouble).view({3, 4});
}

}  // namespace

TEST_CASE("a sparse product is the dense one, for any leading dimensions", "[sparse_product]") {
  const at::Tensor x = random_tensor({2, 5, 4, 3}, 1);
  REQUIRE(max_difference(sparse_product(example(), x), at::matmul(dense(), x)) <= kRounding);
  REQUIRE(max_difference(sparse_product(example(), x[0][0]), at::matmul(dense(), x[0][0])) <=
          kRounding);
}

TEST_CASE("rows are divided by their sums, empty ones left alone", "[sparse_product]") {
  const at::Tensor x = at::ones({4, 1}, at::kDouble);
  const at::Tensor sums = sparse_product(example().row_normalised(), x);
  REQUIRE(max_difference(sums, at::tensor({1., 0., 1.}, at::kDouble).view({3, 1})) <= kRounding);
}

TEST_CASE("the gradient is the product with the transposed matrix", "[sparse_product]") {
  const auto function = [](const std::vector<at::Tensor>& in) {
    return sparse_product(example(), in[0]);
  };
  REQUIRE(aifs::test::gradient_error(function, {random_tensor({2, 4, 3}, 1)}) <=
          aifs::test::gradient_tolerance());
}
