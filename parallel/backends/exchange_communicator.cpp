// SPDX-License-Identifier: Apache-2.0
#include "parallel/backends/exchange_communicator.h"

#include <ATen/ATen.h>

namespace aifs::parallel {

void ExchangeCommunicator::all_reduce(const at::Tensor& tensor, Reduction reduction) {
  const at::Tensor flat = tensor.detach().view({-1});
  const Counts shares = balanced_counts(flat.numel(), size());
  all_gather_rows_into(flat, reduced_share(flat, shares, reduction), shares);
}

void ExchangeCommunicator::broadcast(const at::Tensor& tensor, int root) {
  const at::Tensor flat = tensor.detach().view({-1});
  const bool mine = rank() == root;
  Counts received = for_each_rank(0);
  received[static_cast<size_t>(root)] = flat.numel();
  all_to_all_rows_into(flat, mine ? flat.repeat({size()}) : flat.narrow(0, 0, 0),
                       for_each_rank(mine ? flat.numel() : 0), received);
}

void ExchangeCommunicator::all_gather_rows_into(const at::Tensor& all, const at::Tensor& own,
                                                const Counts& counts) {
  check_own_rows(*this, counts, own, "all-gather");
  std::vector<int64_t> repeats(static_cast<size_t>(own.dim()), 1);
  repeats[0] = size();
  all_to_all_rows_into(all, own.detach().repeat(repeats), for_each_rank(own.size(0)), counts);
}

void ExchangeCommunicator::reduce_scatter_rows_into(const at::Tensor& own, const at::Tensor& all,
                                                    const Counts& counts) {
  check_counts(*this, counts, all, "reduce-scatter");
  own.detach().copy_(reduced_share(all, counts, Reduction::kSum));
}

void ExchangeCommunicator::barrier() {
  all_to_all_rows(at::zeros({0, 1}), for_each_rank(0), for_each_rank(0));
}

at::Tensor ExchangeCommunicator::reduced_share(const at::Tensor& all, const Counts& counts,
                                               Reduction reduction) {
  const Counts equal = for_each_rank(counts[static_cast<size_t>(rank())]);
  return combine_in_rank_order(all_to_all_rows(all, counts, equal), size(), reduction);
}

}  // namespace aifs::parallel
