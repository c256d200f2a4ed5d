// SPDX-License-Identifier: Apache-2.0
#include "model/nodes/node_rows.h"

#include <ATen/ATen.h>

#include "core/check.h"

namespace aifs::model {

at::Tensor side_by_side(const at::Tensor& rows, int64_t copies) {
  AIFS_CHECK(rows.size(0) % copies == 0, rows.size(0), " rows of ", copies, " copies");
  if (copies == 1) return rows;
  const int64_t n = rows.size(0) / copies, width = rows.size(1);
  return rows.view({copies, n, width}).transpose(0, 1).reshape({n, copies * width});
}

at::Tensor copy_after_copy(const at::Tensor& rows, int64_t copies) {
  if (copies == 1) return rows;
  const int64_t n = rows.size(0), width = rows.size(1) / copies;
  return rows.view({n, copies, width}).transpose(0, 1).reshape({copies * n, width});
}

at::Tensor own_nodes(const at::Tensor& field, const NodeTensors& nodes, int64_t dim) {
  return nodes.rows.defined() ? field.index_select(dim, nodes.rows) : field;
}

at::Tensor all_nodes(const at::Tensor& own, const NodeTensors& nodes, int64_t dim) {
  if (!nodes.share) return own;
  const graph::NodePartition& partition = nodes.share->partition;
  at::Tensor all = parallel::all_gather_rows(own.movedim(dim, 0).contiguous(), partition.counts(),
                                             *nodes.share->group);
  if (!partition.in_node_order()) {
    std::vector<int64_t> place;
    for (int64_t node = 0; node < partition.num_nodes(); ++node)
      place.push_back(partition.begin(partition.owner(node)) + partition.local(node));
    all = all.index_select(0, at::tensor(place, at::kLong).to(all.device()));
  }
  return all.movedim(0, dim);
}

}  // namespace aifs::model
