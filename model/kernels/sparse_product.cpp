// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/sparse_product.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "model/kernels/segment.h"

namespace aifs::model {

SparseMatrix SparseMatrix::create(const at::Tensor& row, const at::Tensor& column,
                                  const at::Tensor& value, int64_t num_rows, int64_t num_columns) {
  const at::Tensor order = at::argsort(row, /*stable=*/true, 0, /*descending=*/false);
  return {EdgeIndex::create(column.index_select(0, order), row.index_select(0, order), num_columns,
                            num_rows),
          value.reshape({-1}).index_select(0, order)};
}

SparseMatrix SparseMatrix::row_normalised() const {
  const at::Tensor sums = sum_edges(values.unsqueeze(1), *index, /*at_targets=*/true).squeeze(1);
  const at::Tensor divisors = at::where(sums == 0, at::ones_like(sums), sums);
  return {index, values / divisors.index_select(0, index->target)};
}

SparseMatrix SparseMatrix::to(at::ScalarType dtype) const {
  return {index, values.to(dtype)};
}

at::Tensor sparse_product(const SparseMatrix& matrix, const at::Tensor& x) {
  const EdgeIndexPtr& index = matrix.index;
  AIFS_CHECK(x.dim() >= 2 && x.size(-2) == index->num_sources, "rows of shape ", x.sizes(),
             " for a matrix of ", index->num_sources, " columns");
  // Nodes first, everything else side by side.
  const at::Tensor by_node = x.movedim(-2, 0).contiguous();
  const at::Tensor rows = by_node.view({by_node.size(0), -1});
  const at::Tensor terms = rows.index_select(0, index->source) * matrix.values.unsqueeze(1);
  std::vector<int64_t> sizes = by_node.sizes().vec();
  sizes[0] = index->num_targets;
  return sum_at_targets(terms, index).view(sizes).movedim(0, -2);
}

}  // namespace aifs::model
