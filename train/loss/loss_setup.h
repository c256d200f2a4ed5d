// SPDX-License-Identifier: Apache-2.0
// From the section "loss" to a Loss for one dataset and graph.
#pragma once

#include <functional>

#include "data/fields/dataset.h"
#include "graph/base/graph.h"
#include "train/loss/loss.h"
#include "train/loss/loss_options.h"
#include "train/loss/sparse_rows.h"

namespace aifs::train {

struct LossInputs {
  const data::VariableTable& variables;
  const data::Statistics& statistics;                     // after the normaliser's remap
  const std::map<int64_t, data::Statistics>& tendencies;  // by time difference in seconds
  const graph::NodeSet& nodes;                            // of the data grid, all of them
  const graph::EdgeSet* edges = nullptr;  // from these nodes to these, if the graph has some
  std::string grid_name = {};             // graph.grid
  int64_t timestep_s = 0;
  int64_t times_out = 1;
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  // Names of the columns of targets; empty: outputs, as the network gives them.
  std::vector<std::string> target_names = {};
  // Sees each sparse matrix that a loss is built with, in the order of the losses (smoothers of
  // scales first), and gives the one that is used.
  std::function<SparseRowsPtr(const SparseRowsPtr&)> matrix_used = {};
};

// The scaler of a name (loss_options.h), in the type of the loss. `modes`: how many errors a
// spectral loss has in place of nodes.
Scaler build_scaler(const LossOptions& options, const std::string& name, const LossInputs& inputs,
                    int64_t modes = 0);

// Throws ConfigError or DataError if a loss or a scaler lacks what it needs. The NaN-mask scaler
// depends on the batch: it comes with each call, as do this rank's nodes.
LossPtr build_loss(const LossOptions& options, const LossInputs& inputs);

// What can be said of the losses without building them: names, grids of transforms, statistics. Of
// `inputs.nodes` only the number counts. Throws as build_loss().
void check_loss(const LossOptions& options, const LossInputs& inputs);

// Weight 0 where an imputed output was NaN, else 1. `nan_mask` (B, N, V) u8 over dataset columns.
Scaler nan_mask_scaler(const at::Tensor& nan_mask, const data::VariableTable& variables,
                       at::ScalarType dtype);

// The call of one batch on this rank's nodes: with the NaN mask if something was imputed.
// `nan_mask` as in data::Batch; type and device are those of `values`.
LossCall call_of_batch(const NodeSlice& nodes, const at::Tensor& nan_mask,
                       const data::VariableTable& variables, const at::Tensor& values);

}  // namespace aifs::train
