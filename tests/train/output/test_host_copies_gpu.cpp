// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include "tests/support/catch.h"
#include "tests/support/gpu.h"
#include "tests/support/tensors.h"
#include "train/output/host_copies.h"

using namespace aifs;
using namespace aifs::train;
using test::random_tensor;

TEST_CASE("copies from a GPU are those of the values when copy() was called", "[host_copies]") {
  const at::Tensor here = random_tensor({1 << 20}, 1);
  const at::Tensor there = here.to(at::kCUDA), wide = there.to(at::kBFloat16);
  HostCopies copies(/*bytes=*/8 << 20, at::Device(at::kCUDA, 0));
  const at::Tensor kept = copies.copy(there), kept_wide = copies.copy(wide);
  copies.end();
  there.zero_(), wide.zero_();  // behind the copies on the same stream
  copies.wait();
  REQUIRE(at::equal(kept, here));
  REQUIRE(at::equal(kept_wide, here.to(at::kBFloat16)));
}
