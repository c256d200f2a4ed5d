// SPDX-License-Identifier: Apache-2.0
// The two points where a loss meets the nodes of other ranks. Everything a loss sums over nodes
// goes through sum_over_ranks(), every loss that needs neighbours or whole waves through gather();
// with the members empty this rank has all nodes and both return what they get.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "parallel/communicator.h"

namespace aifs::train {

struct NodeSlice {
  int64_t first = 0;
  int64_t total = 0;  // nodes of all ranks; 0: this rank has them all

  // Adds fp64 partial sums over own nodes up; every rank gets the sum. The gradient is passed on
  // unchanged: each rank ends with the gradient of the whole loss for its own nodes.
  std::function<at::Tensor(const at::Tensor&)> reduce = {};
  // (B, T, E, own nodes, V) -> (B, T, E, all nodes, V); the gradient is the own slice.
  std::function<at::Tensor(const at::Tensor&)> collect = {};

  at::Tensor sum_over_ranks(const at::Tensor& partial) const {
    return reduce ? reduce(partial) : partial;
  }
  at::Tensor gather(const at::Tensor& field) const { return collect ? collect(field) : field; }
};

// This rank's slice of nodes that are divided over a group, so many in a row to each rank. The
// group outlives the slice and the graphs of losses that use it; both functions are collective.
NodeSlice slice_of_group(const parallel::Counts& counts, parallel::Communicator& group);

}  // namespace aifs::train
