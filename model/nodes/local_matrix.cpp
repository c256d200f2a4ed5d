// SPDX-License-Identifier: Apache-2.0
#include "model/nodes/local_matrix.h"

#include <ATen/ATen.h>

namespace aifs::model {

namespace {

std::vector<int32_t> numbers(const at::Tensor& index) {
  const int32_t* first = index.const_data_ptr<int32_t>();
  return {first, first + index.numel()};
}

EdgeTensors own_entries(const SparseMatrix& whole, const NodeShare* sources,
                        const NodeShare& targets) {
  graph::EdgeSet entries;
  entries.source_index = numbers(whole.index->source);
  entries.target_index = numbers(whole.index->target);
  EdgeTensors mine;
  mine.attributes = whole.values;
  if (sources) {
    keep_own_edges(mine, entries, sources->partition, targets, graph::SourceRows::kHalo);
  } else {
    const auto all_here = graph::NodePartition::contiguous(whole.index->num_sources, 1);
    keep_own_edges(mine, entries, all_here, targets, graph::SourceRows::kAll);
  }
  return mine;
}

}  // namespace

LocalMatrix::LocalMatrix(const ParameterScope& scope, const SparseMatrix& whole,
                         const NodeShare* sources, const NodeShare* targets)
    : own_(whole) {
  const auto constant = [&](const at::Tensor& tensor) { return scope.set().add_constant(tensor); };
  if (targets) {
    const EdgeTensors mine = own_entries(whole, sources, *targets);
    own_ = {mine.index, mine.attributes};
    if (mine.exchange) {
      auto halo = std::make_shared<parallel::RowExchange>(*mine.exchange->halo);
      halo->send_rows = constant(halo->send_rows);
      halo_ = halo;
    }
  }
  own_ = {own_.index->with_each(constant), constant(own_.values.to(scope.dtype()))};
}

at::Tensor LocalMatrix::product(const at::Tensor& x) const {
  if (!halo_) return sparse_product(own_, x);
  // Nodes first, everything else side by side.
  const at::Tensor by_node = x.movedim(-2, 0);
  std::vector<int64_t> sizes = by_node.sizes().vec();
  const at::Tensor rows = parallel::with_received_rows(by_node.flatten(1).contiguous(), halo_);
  sizes[0] = own_.index->num_targets;
  return sparse_product(own_, rows).view(sizes).movedim(0, -2);
}

}  // namespace aifs::model
