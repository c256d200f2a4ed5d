// SPDX-License-Identifier: Apache-2.0
// Built twice, the second time with AIFS_GPU_TEST for a GPU.
#include "model/kernels/overlap_sum.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/tensors.h"
#include "tests/support/test_device.h"

using namespace aifs;
using namespace aifs::model;
using test::kDevice;
using test::random_tensor;

namespace {

// The sum in fp64, piece by piece.
at::Tensor expected_sum(const std::vector<OverlappingPieces>& groups, int64_t batches,
                        int64_t rows) {
  std::vector<int64_t> sizes = groups[0].values.sizes().vec();
  sizes[0] = batches, sizes[1] = rows;
  at::Tensor sum = at::zeros(sizes, at::kDouble);
  for (const OverlappingPieces& group : groups) {
    const at::Tensor values = group.values.to(at::kCPU, at::kDouble);
    for (int64_t b = 0; b < batches; ++b)
      for (int64_t i = 0; i < group.count; ++i)
        sum[b]
            .narrow(0, group.begin + i * group.step, values.size(1))
            .add_(values[b * group.count + i]);
  }
  return sum;
}

}  // namespace

TEST_CASE("pieces that overlap are summed", "[overlap_sum]") {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const int64_t batches : {1, 3}) {
      const auto values = [&](int64_t count, int64_t rows, uint64_t seed) {
        return random_tensor({batches * count, rows, 2, 8}, seed).to(kDevice, type);
      };
      // A first, five that reach over both neighbours, a last; row 99 is in none.
      const std::vector<OverlappingPieces> groups{{values(1, 21, 1), 0, 13, 1},
                                                  {values(5, 29, 2), 5, 13, 5},
                                                  {values(1, 29, 3), 70, 13, 1}};
      const at::Tensor sum = overlap_sum(groups, 100);
      INFO(at::toString(type) << ", " << batches << " batches");
      REQUIRE(sum.scalar_type() == type);
      const at::Tensor expected = expected_sum(groups, batches, 100);
      const double epsilon = type == at::kDouble     ? 1e-15
                             : type == at::kFloat    ? 1e-6
                             : type == at::kBFloat16 ? 0x1p-8
                                                     : 0x1p-11;
      // Up to four numbers of size one to a few: each sum on the way is rounded on a CPU.
      const at::Tensor error = (sum.to(at::kCPU, at::kDouble) - expected).abs();
      REQUIRE((error <= 4 * epsilon * (1 + expected.abs()).add(4)).all().item<bool>());
      REQUIRE(sum.select(1, 99).abs().max().item<double>() == 0.0);
      REQUIRE(at::equal(sum, overlap_sum(groups, 100)));
    }
  }
}

TEST_CASE("one piece that covers all rows is the sum", "[overlap_sum]") {
  const at::Tensor piece =
      random_tensor({2, 7, 8}, 4).to(at::TensorOptions(kDevice).dtype(at::kBFloat16));
  REQUIRE(at::equal(overlap_sum({{piece, 0, 1, 1}}, 7), piece));
  REQUIRE_THROWS_AS(overlap_sum({}, 7), Error);
}
