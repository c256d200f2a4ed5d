// SPDX-License-Identifier: Apache-2.0
// A fixed sparse matrix times rows of nodes: interpolation between node sets. Differentiable in the
// rows; deterministic.
#pragma once

#include "model/kernels/edge_index.h"

namespace aifs::model {

// Entry m adds value[m] * rows[source[m]] to result[target[m]]; entries at one place add up.
struct SparseMatrix {
  std::shared_ptr<const EdgeIndex> index;
  at::Tensor values;  // (M) in the order of the index

  bool defined() const { return index != nullptr; }
  // From entries in any order; `row` numbers results, `column` sources.
  static SparseMatrix create(const at::Tensor& row, const at::Tensor& column,
                             const at::Tensor& value, int64_t num_rows, int64_t num_columns);
  // Each row divided by its sum, unless that is zero.
  SparseMatrix row_normalised() const;
  SparseMatrix to(at::ScalarType dtype) const;
};

// x (..., columns, V) -> (..., rows, V).
at::Tensor sparse_product(const SparseMatrix& matrix, const at::Tensor& x);

}  // namespace aifs::model
