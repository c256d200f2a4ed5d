// SPDX-License-Identifier: Apache-2.0
// Rows of nodes on their way between ranks.
#pragma once

#include "model/nodes/graph_tensors.h"

namespace aifs::model {

// Copy after copy, (copies * n, C), to one row a node, (n, copies * C), as rows travel; and back.
at::Tensor side_by_side(const at::Tensor& rows, int64_t copies);
at::Tensor copy_after_copy(const at::Tensor& rows, int64_t copies);

// Fields of all nodes along dimension `dim` to those of this rank.
at::Tensor own_nodes(const at::Tensor& field, const NodeTensors& nodes, int64_t dim);
// And back, in node order. Differentiable; collective over the ranks that share the nodes.
at::Tensor all_nodes(const at::Tensor& own, const NodeTensors& nodes, int64_t dim);

}  // namespace aifs::model
