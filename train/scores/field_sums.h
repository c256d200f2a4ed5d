// SPDX-License-Identifier: Apache-2.0
// What the scores of a validation are made of: sums over cells and dates, fp64, for each output of
// a dataset at one lead time, of all cells and of each region. The figures are those of
// `aifs-train verify` for one member; of several they are means over the members.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "parallel/process_mesh.h"

namespace aifs::train {

// The fields of a date, (1, E, n, V) in units in which errors are compared.
struct ScoredFields {
  at::Tensor forecast, truth, persistence;
  at::Tensor valid;  // (1, 1, n, V): 0 where there is no truth; undefined: there is everywhere
};

struct FieldSums {
  // Weighted means of the cells, summed over dates: (rows, V); row 0 is that of all cells.
  at::Tensor squared, persistence_squared;  // of errors
  at::Tensor error, absolute;
  // Variances over the cells; there once sum_over_ranks() was called.
  at::Tensor activity, truth_activity;

  FieldSums(int64_t rows, int64_t num_outputs, at::Device device);

  // Adds a date. `weights`: of each row, (n, 1), over the cells of all ranks 1 in sum. Where there
  // is no truth the error counts as 0, and the cell not for activity.
  void add_date(const ScoredFields& fields, const std::vector<at::Tensor>& weights);
  void add(const FieldSums& other);
  // Sums over the cells of a model group and the dates of all replicas, from the last stage of a
  // pipeline to all. Collective.
  void sum_over_ranks(const parallel::ProcessMesh& mesh);

  // True if no figure is larger than `most` or not a number.
  bool are_below(double most) const;

 private:
  // Of each date the sums over own cells from which variances follow once those of other ranks are
  // added: (rows, 3 + members of forecast and truth, V).
  std::vector<at::Tensor> moments_;
  int64_t num_members_ = 1;  // of the forecast
};

}  // namespace aifs::train
