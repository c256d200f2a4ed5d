// SPDX-License-Identifier: Apache-2.0
// From the section "loss" to a Loss for one dataset and graph.
#pragma once

#include "train/loss/loss_options.h"

namespace aifs::train {

// The scaler of a name (loss_options.h), in the type of the loss. `modes`: how many errors a
// spectral loss has in place of nodes.
Scaler build_scaler(const LossOptions& options, const std::string& name, const LossInputs& inputs,
                    int64_t modes = 0);

// Throws ConfigError or DataError if a loss or a scaler lacks what it needs. The NaN-mask scaler
// depends on the batch: it comes with each call, as do this rank's nodes.
LossPtr build_loss(const LossOptions& options, const LossInputs& inputs);

// Checks what can be said of the losses without building them: names, grids of transforms,
// statistics. Of `inputs.nodes` only the number counts. Throws as build_loss().
void check_loss(const LossOptions& options, const LossInputs& inputs);

// Weight 0 where an imputed output was NaN, else 1. `nan_mask` (B, N, V) u8 over dataset columns.
Scaler nan_mask_scaler(const at::Tensor& nan_mask, const data::VariableTable& variables,
                       at::ScalarType dtype);

// The call of one batch on this rank's nodes: with the NaN mask if something was imputed.
// `nan_mask` as in data::Batch; type and device are those of `values`.
LossCall call_of_batch(const NodeSlice& nodes, const at::Tensor& nan_mask,
                       const data::VariableTable& variables, const at::Tensor& values);

}  // namespace aifs::train
