// SPDX-License-Identifier: Apache-2.0
#include "train/output/host_copies.h"

#include <ATen/ATen.h>

#include "tests/support/catch.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::train;
using test::random_tensor;

TEST_CASE("copies keep values, types and shapes when the tensors change", "[host_copies]") {
  const at::Tensor a = random_tensor({3, 5}, 1), b = at::arange(7), none = at::empty({0, 4});
  const at::Tensor column = random_tensor({4, 3}, 2).narrow(1, 1, 1);  // not contiguous
  const at::Tensor a_before = a.clone(), column_before = column.clone();
  HostCopies copies(/*bytes=*/1024, at::kCPU);
  const at::Tensor kept_a = copies.copy(a), kept_b = copies.copy(b);
  const at::Tensor kept_column = copies.copy(column), kept_none = copies.copy(none);
  copies.end();
  copies.wait();
  a.zero_(), column.zero_();
  REQUIRE(at::equal(kept_a, a_before));
  REQUIRE(kept_b.scalar_type() == at::kLong);
  REQUIRE(at::equal(kept_b, b));
  REQUIRE(kept_column.is_contiguous());
  REQUIRE(at::equal(kept_column, column_before));
  REQUIRE(kept_none.sizes() == none.sizes());
}

TEST_CASE("cleared memory is filled again, and what does not fit has its own", "[host_copies]") {
  HostCopies copies(/*bytes=*/128, at::kCPU);
  const at::Tensor first = copies.copy(at::full({4}, 1.0f));
  const at::Tensor large = copies.copy(at::full({100}, 2.0f));
  copies.clear();
  const at::Tensor second = copies.copy(at::full({4}, 3.0f));
  REQUIRE(first.data_ptr() == second.data_ptr());
  REQUIRE(at::equal(large, at::full({100}, 2.0f)));
  REQUIRE(reinterpret_cast<uintptr_t>(second.data_ptr()) % 8 == 0);
}
