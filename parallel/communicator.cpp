// SPDX-License-Identifier: Apache-2.0
#include "parallel/communicator.h"

#include <ATen/ATen.h>

#include <numeric>

#include "core/check.h"

namespace aifs::parallel {

namespace {

// So many rows of this kind, not yet written.
at::Tensor empty_rows_like(const at::Tensor& like, const Counts& counts) {
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes[0] = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  return at::empty(sizes, like.options().requires_grad(false));
}

}  // namespace

at::Tensor Communicator::all_gather_rows(const at::Tensor& own, const Counts& counts) {
  at::Tensor all = empty_rows_like(own, counts);
  all_gather_rows_into(all, own, counts);
  return all;
}

at::Tensor Communicator::reduce_scatter_rows(const at::Tensor& all, const Counts& counts) {
  check_counts(*this, counts, all, "reduce-scatter");
  at::Tensor own = empty_rows_like(all, {counts[static_cast<size_t>(rank())]});
  reduce_scatter_rows_into(own, all, counts);
  return own;
}

at::Tensor Communicator::all_to_all_rows(const at::Tensor& rows, const Counts& send_counts,
                                         const Counts& recv_counts) {
  at::Tensor received = empty_rows_like(rows, recv_counts);
  all_to_all_rows_into(received, rows, send_counts, recv_counts);
  return received;
}

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

void check_own_rows(const Communicator& group, const Counts& counts, const at::Tensor& own,
                    const char* operation) {
  AIFS_CHECK(static_cast<int>(counts.size()) == group.size() && own.dim() >= 1 &&
                 own.size(0) == counts[static_cast<size_t>(group.rank())],
             operation, " on rank ", group.rank(), ": a tensor of shape ", own.sizes(), " and ",
             counts.size(), " counts for ", group.size(), " ranks");
}

at::Tensor Communicator::background_memory(int64_t /*elements*/, int64_t /*largest*/,
                                           const at::TensorOptions& /*options*/) {
  return {};
}

void Communicator::all_reduce_in_background(const at::Tensor& tensor, double factor) {
  all_reduce(tensor, Reduction::kSum);
  if (factor != 1.0) tensor.mul_(factor);
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
