// SPDX-License-Identifier: Apache-2.0
// A sparse matrix between two node sets as one rank sees it: the rows of its own result nodes, and
// the columns these need, wherever they are.
#pragma once

#include "model/base/parameters.h"
#include "model/kernels/sparse_product.h"
#include "model/nodes/graph_tensors.h"

namespace aifs::model {

class LocalMatrix {
 public:
  LocalMatrix() = default;
  // `whole` has a column per source and a row per target; rows keep their sums and their order.
  // Null: every rank has all nodes; targets are shared if sources are. In the type and, once the
  // parameters are flat, on the device of `scope`.
  LocalMatrix(const ParameterScope& scope, const SparseMatrix& whole, const NodeShare* sources,
              const NodeShare* targets);

  // x (..., own sources, V) -> (..., own targets, V). Differentiable. Collective over the ranks
  // that share the sources.
  at::Tensor product(const at::Tensor& x) const;

 private:
  SparseMatrix own_;
  std::shared_ptr<const parallel::RowExchange> halo_;  // null: all sources are here
};

}  // namespace aifs::model
