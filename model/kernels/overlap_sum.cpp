// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/overlap_sum.h"

#include <ATen/ATen.h>

#include "core/check.h"

#ifdef AIFS_HAVE_CUDA
#include "model/kernels/count_work.h"
#include "model/kernels/cuda/overlap_sum.h"
#include "model/kernels/cuda_call.h"
#endif

namespace aifs::model {

namespace {

#ifdef AIFS_HAVE_CUDA
bool kernel_fits(const std::vector<OverlappingPieces>& groups, const at::Tensor& sum) {
  const at::ScalarType type = sum.scalar_type();
  return sum.is_cuda() && (type == at::kBFloat16 || type == at::kHalf) &&
         groups.size() <= cuda::kMostOverlaps && sum[0][0].numel() % 8 == 0;
}

void sum_by_kernel(const std::vector<OverlappingPieces>& groups, const at::Tensor& sum) {
  cuda::OverlapSum s{.batches = sum.size(0),
                     .rows = sum.size(1),
                     .width = static_cast<int>(sum[0][0].numel()),
                     .type = *element_type(sum.scalar_type()),
                     .num_groups = static_cast<int>(groups.size()),
                     .groups = {},
                     .out = sum.data_ptr()};
  std::vector<at::Tensor> tensors{sum};
  for (size_t g = 0; g < groups.size(); ++g) {
    tensors.push_back(groups[g].values.contiguous());
    s.groups[g] = {tensors.back().const_data_ptr(), groups[g].begin, tensors.back().size(1),
                   groups[g].step, groups[g].count};
  }
  cuda::overlap_sum(s, stream_of(sum));
  count_work("overlapping rows summed", tensors);
}
#endif

}  // namespace

at::Tensor overlap_sum(const std::vector<OverlappingPieces>& groups, int64_t rows) {
  AIFS_CHECK(!groups.empty(), "no pieces");
  const at::Tensor& like = groups[0].values;
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes[0] /= groups[0].count;
  sizes[1] = rows;
  const at::Tensor sum = at::empty(sizes, like.options());
#ifdef AIFS_HAVE_CUDA
  if (kernel_fits(groups, sum)) {
    sum_by_kernel(groups, sum);
    return sum;
  }
#endif
  sum.zero_();
  for (const OverlappingPieces& group : groups) {
    const at::Tensor& values = group.values;
    for (int64_t i = 0; i < group.count; ++i) {
      // Piece i of every batch.
      const at::Tensor pieces = values.unflatten(0, {sizes[0], group.count}).select(1, i);
      sum.narrow(1, group.begin + i * group.step, values.size(1)).add_(pieces);
    }
  }
  return sum;
}

}  // namespace aifs::model
