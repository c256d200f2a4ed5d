// SPDX-License-Identifier: Apache-2.0
// The dataset and graph that a loss and its scalers are made for.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/fields/dataset.h"
#include "data/fields/variables.h"
#include "graph/base/graph.h"
#include "train/loss/sparse_rows.h"

namespace aifs::train {

struct LossInputs {
  const data::VariableTable& variables;
  const data::Statistics& statistics;                     // after the normaliser's remap
  const std::map<int64_t, data::Statistics>& tendencies;  // by time difference in seconds
  const graph::NodeSet& nodes;                            // of the data grid, all of them
  const graph::EdgeSet* edges = nullptr;  // from these nodes to these, if the graph has some
  std::string grid_name = {};             // graph.grid
  at::Tensor output_mask = {};            // (N) bool, true where the network decides; none: all
  int64_t timestep_s = 0;
  int64_t times_out = 1;
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  // Names of the columns of targets; empty: outputs, as the network gives them.
  std::vector<std::string> target_names = {};
  // Sees each sparse matrix that a loss is built with, in the order of the losses (smoothers of
  // scales first), and gives the one that is used.
  std::function<SparseRowsPtr(const SparseRowsPtr&)> matrix_used = {};

  // The matrix that a loss uses in place of one that was made for it.
  SparseRowsPtr used(SparseRowsPtr made) const { return matrix_used ? matrix_used(made) : made; }
};

}  // namespace aifs::train
