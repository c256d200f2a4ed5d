// SPDX-License-Identifier: Apache-2.0
// From the section "loss" to a PointwiseLoss for one dataset and graph.
#pragma once

#include "train/options.h"

namespace aifs::train {

struct LossInputs {
  const data::VariableTable& variables;
  const data::Statistics& statistics;                     // after the normaliser's remap
  const std::map<int64_t, data::Statistics>& tendencies;  // by time difference in seconds
  std::vector<float> area_weights;                        // (N) attribute of all data nodes
  int64_t timestep_s = 0;
  int64_t times_out = 1;
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  data::NodeRange nodes = {};  // this rank's nodes; empty: all
  SumOverRanks sum_over_ranks = {};
};

// Throws ConfigError or DataError if a scaler lacks what it needs. The NaN-mask scaler depends on
// the batch and is left out; has_nan_mask() says whether nan_mask_scaler() must be added.
PointwiseLoss build_loss(const LossOptions& options, const LossInputs& inputs);
bool has_nan_mask(const LossOptions& options);

// Weight 0 where an imputed output was NaN, else 1. `nan_mask` (B, N, V) u8 over dataset columns.
Scaler nan_mask_scaler(const at::Tensor& nan_mask, const data::VariableTable& variables,
                       at::ScalarType dtype);

// Where the NaN-mask scaler stands among the others.
PointwiseLoss with_nan_mask(const PointwiseLoss& loss, const LossOptions& options,
                            const Scaler& mask);

// The loss of one batch: with the NaN mask if `options` ask for it and something was imputed.
// `nan_mask` as in data::Batch; type and device are those of `values`.
PointwiseLoss loss_of_batch(const PointwiseLoss& loss, const LossOptions& options,
                            const at::Tensor& nan_mask, const data::VariableTable& variables,
                            const at::Tensor& values);

}  // namespace aifs::train
