// SPDX-License-Identifier: Apache-2.0
#include "model/base/tensor_ranks.h"

#include <ATen/ATen.h>

#include "parallel/autograd.h"

namespace aifs::model {

at::Tensor Slice::of(const at::Tensor& whole) const {
  if (!group) return whole;
  const auto rank = static_cast<size_t>(group->rank());
  return whole.narrow(dimension, starts_of(counts)[rank], counts[rank]);
}

TensorRanks::TensorRanks(parallel::Communicator& group)
    : group_(group.size() > 1 ? &group : nullptr) {}

parallel::Counts TensorRanks::counts(int64_t n, int64_t unit) const {
  parallel::Counts counts = balanced_counts(n / unit, any() ? group_->size() : 1);
  for (int64_t& count : counts)
    count *= unit;
  return counts;
}

TensorRanks::Range TensorRanks::own(int64_t n, int64_t unit) const {
  const parallel::Counts all = counts(n, unit);
  const auto rank = static_cast<size_t>(any() ? group_->rank() : 0);
  return {starts_of(all)[rank], all[rank]};
}

Slice TensorRanks::slice(int64_t dimension, int64_t n, int64_t unit) const {
  if (!any()) return {};
  return {group_, dimension, counts(n, unit)};
}

at::Tensor TensorRanks::copied(const at::Tensor& whole) const {
  return any() ? parallel::copied_to_ranks(whole, *group_) : whole;
}

at::Tensor TensorRanks::total(const at::Tensor& partial) const {
  return any() ? parallel::total_over_ranks(partial, *group_) : partial;
}

at::Tensor TensorRanks::scattered(const at::Tensor& partial, int64_t unit) const {
  if (!any()) return partial;
  return parallel::reduce_scatter_rows(partial, counts(partial.size(0), unit), *group_);
}

}  // namespace aifs::model
