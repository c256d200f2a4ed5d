// SPDX-License-Identifier: Apache-2.0
// The edges between two node sets in the form the kernels want: sorted by target, with row pointers
// by target and, through a permutation, by source. Everything that depends on the graph alone is
// computed once; no step sorts or counts.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace aifs::model {

// All index tensors are int32 and live on one device.
struct EdgeIndex {
  int64_t num_sources = 0, num_targets = 0, num_edges = 0;
  at::Tensor source, target;  // (M) nodes of each edge; target ascending
  at::Tensor target_begin;    // (num_targets + 1) edges [begin[i], begin[i+1]) end at target i
  at::Tensor source_begin;    // (num_sources + 1) into source_edges
  at::Tensor source_edges;    // (M) edges grouped by source, ascending within a source

  // From edges already sorted by target. Throws Error if they are not, or an index is out of range.
  static std::shared_ptr<const EdgeIndex> create(const at::Tensor& source, const at::Tensor& target,
                                                 int64_t num_sources, int64_t num_targets);

  // Returns this graph `copies` times over, copy b on nodes b * num_sources ... and b * num_targets
  // ...
  std::shared_ptr<const EdgeIndex> repeat(int64_t copies) const;

  // Returns this graph with each tensor replaced by one of the same values.
  std::shared_ptr<const EdgeIndex> with_each(
      const std::function<at::Tensor(const at::Tensor&)>& replace) const;
  std::shared_ptr<const EdgeIndex> to(at::Device device) const;
};

}  // namespace aifs::model
