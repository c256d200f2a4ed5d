// SPDX-License-Identifier: Apache-2.0
// A sparse matrix that takes fields from one set of nodes to another (or to the same): smoothers of
// multi-scale losses, projections to a spectral grid, neighbours in graph scores.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <vector>

#include "graph/base/graph.h"

namespace aifs::train {

class SparseRows {
 public:
  // Entry e adds value[e] * x[column[e]] to y[row[e]]; several entries at one place add up.
  // Throws Error for an index outside the matrix.
  SparseRows(std::span<const int64_t> row, std::span<const int64_t> column,
             std::span<const float> value, int64_t num_rows, int64_t num_columns);

  int64_t num_rows() const { return num_rows_; }
  int64_t num_columns() const { return num_columns_; }
  int64_t num_entries() const { return columns_.size(0); }

  // x (..., num_columns, V) -> (..., num_rows, V) in the type of x; differentiable.
  at::Tensor apply(const at::Tensor& x) const;
  // y (..., num_rows, V) -> (..., num_columns, V): the transposed matrix.
  at::Tensor apply_transposed(const at::Tensor& y) const;

  // Entries in the order of rows, within a row as they were given.
  const at::Tensor& rows() const { return rows_; }        // i64
  const at::Tensor& columns() const { return columns_; }  // i64
  const at::Tensor& values() const { return values_; }    // f32

 private:
  int64_t num_rows_, num_columns_;
  at::Tensor rows_, columns_, values_;
  at::Tensor row_begin_;                    // i64 (num_rows + 1)
  at::Tensor column_begin_, column_order_;  // i64: the entries of each column
};

using SparseRowsPtr = std::shared_ptr<const SparseRows>;

// Each target is the mean of its `neighbours` nearest sources, weighted by
// exp(-length^2 / (2 sigma^2)), length and sigma as angles in radians.
SparseRowsPtr gaussian_smoother(const graph::NodeSet& source, const graph::NodeSet& target,
                                int64_t neighbours, double sigma);

// The values of each row divided by their sum; a row that sums to 0 is left as it is. fp32.
std::vector<float> row_normalised(std::span<const int64_t> row, std::span<const float> value,
                                  int64_t num_rows);

}  // namespace aifs::train
