// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/row_products.h"

#include <ATen/ATen.h>

#include <limits>

#include "tests/support/catch.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::random_tensor;

TEST_CASE("own products of rows are those of LibTorch", "[row_products]") {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const double epsilon =
        type == at::kDouble ? std::numeric_limits<double>::epsilon() : 1.1920929e-7;
    for (const int64_t rows : {1, 50, 1000}) {
      for (const int64_t in : {1, 11, 48}) {
        for (const int64_t out : {3, 24, 64}) {
          const at::Tensor x = random_tensor({rows, in}, 1).to(type);
          const at::Tensor w = random_tensor({out, 2 * in}, 2).to(type).narrow(1, in, in);
          const at::Tensor addend = random_tensor({rows, out}, 3).to(type);
          const at::Tensor d = random_tensor({rows, out}, 4).to(type);
          const at::Tensor expected = at::mm(x.to(at::kDouble), w.to(at::kDouble).t());
          const double tolerance = 10.0 * static_cast<double>(in) * epsilon;
          REQUIRE(test::max_difference(product_rows(x, w.t()), expected) <= tolerance);
          REQUIRE(test::max_difference(product_rows(x, w.t(), addend),
                                       expected + addend.to(at::kDouble)) <= tolerance);
          const at::Tensor sum = at::ones({out, 2 * in}, type);
          add_outer_product(sum.narrow(1, 0, in), d, x);
          const at::Tensor outer = at::mm(d.to(at::kDouble).t(), x.to(at::kDouble));
          REQUIRE(test::max_difference(sum.narrow(1, 0, in), outer + 1.0) <=
                  10.0 * static_cast<double>(rows) * epsilon);
          REQUIRE(at::equal(sum.narrow(1, in, in), at::ones({out, in}, type)));
        }
      }
    }
  }
}

TEST_CASE("wide and narrow types are left to the library", "[row_products]") {
  REQUIRE(row_products_support(at::zeros({2, 2}), kWidestRowProduct));
  REQUIRE(!row_products_support(at::zeros({2, 2}), kWidestRowProduct + 1));
  REQUIRE(!row_products_support(at::zeros({2, 2}, at::kBFloat16), 16));
}
