// SPDX-License-Identifier: Apache-2.0
#include "parallel/communicator.h"

#include <ATen/ATen.h>

#include "core/check.h"

namespace aifs::parallel {

void check_counts(const Communicator& group, const Counts& counts, const at::Tensor& rows,
                  const char* operation) {
  int64_t total = 0;
  for (const int64_t count : counts)
    total += count;
  AIFS_CHECK(
      static_cast<int>(counts.size()) == group.size() && rows.dim() >= 1 && total == rows.size(0),
      operation, " on rank ", group.rank(), ": ", counts.size(), " counts with sum ", total,
      " for a tensor of shape ", rows.sizes(), " and ", group.size(), " ranks");
}

void check_own_rows(const Communicator& group, const Counts& counts, const at::Tensor& own) {
  AIFS_CHECK(static_cast<int>(counts.size()) == group.size() &&
                 own.size(0) == counts[static_cast<size_t>(group.rank())],
             "all-gather on rank ", group.rank(), ": ", own.size(0), " rows and ", counts.size(),
             " counts for ", group.size(), " ranks");
}

at::Tensor empty_rows_like(const at::Tensor& like, int64_t rows) {
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes[0] = rows;
  return at::empty(sizes, like.options().requires_grad(false));
}

at::Tensor combine_in_rank_order(const at::Tensor& parts, int num_parts, Reduction reduction) {
  const int64_t rows = parts.size(0) / num_parts;
  at::Tensor result = parts.narrow(0, 0, rows).clone();
  for (int p = 1; p < num_parts; ++p) {
    const at::Tensor part = parts.narrow(0, p * rows, rows);
    if (reduction == Reduction::kSum) result.add_(part);
    if (reduction == Reduction::kMax) result.copy_(at::maximum(result, part));
  }
  return result;
}

}  // namespace aifs::parallel
