// SPDX-License-Identifier: Apache-2.0
// Weighted point-wise losses (anemoi-training 0.17, losses): a field of errors times its scalers,
// one after another in their order, then the mean over variables, the sum over time and grid, and
// the mean over batch and ensemble. Nothing divides by the sum of weights: scalers carry it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/loss/node_slice.h"
#include "train/loss/pointwise_error.h"
#include "train/loss/scalers.h"

namespace aifs::train {

// How the variable axis is reduced.
enum class OverVariables { kMean, kSum, kKeep };

struct PointwiseLoss {
  PointwiseError error = mse_error();
  // NaN in prediction or target count as no error there (the point still counts in every mean).
  bool ignore_nans = false;
  std::vector<Scaler> scalers = {};
  NodeSlice nodes = {};

  // prediction (B, T, E, N, V_out), target of the same shape or with E = 1, both normalised and in
  // model-output order. Scalar, or (V_out) with kKeep; fp64, like the sum over the grid.
  at::Tensor operator()(const at::Tensor& prediction, const at::Tensor& target,
                        OverVariables reduction = OverVariables::kMean) const;

  // Returns this loss without the scalers that act on an axis, or without one by name.
  PointwiseLoss without(Axis axis) const;
  PointwiseLoss without(const std::string& scaler) const;
  // For fields that hold some output columns only: scalers over variables are reduced to them.
  PointwiseLoss for_columns(const std::vector<int64_t>& columns) const;

  // The field of errors before scalers; RMSE takes its root after the reduction.
  at::Tensor field(const at::Tensor& prediction, const at::Tensor& target) const;
};

// The own nodes of a scaler that covers the whole grid; anything else as it is.
at::Tensor own_nodes(const at::Tensor& factor, int64_t field_nodes, const NodeSlice& nodes);

// The product of the scalers as one factor of the field (only where they act: small), 1 if none.
at::Tensor scaler_product(const std::vector<Scaler>& scalers, const at::Tensor& field,
                          const NodeSlice& nodes);

// Members and truth with 0 where the truth or any member is NaN.
std::pair<at::Tensor, at::Tensor> without_nans(const at::Tensor& members, const at::Tensor& truth);

// The field (B, T, E, N, V) times each scaler in turn. Scalers of the whole grid are cut to the own
// nodes. Throws Error if there are scalers and none of them acts on the grid.
at::Tensor apply_scalers(at::Tensor field, const std::vector<Scaler>& scalers,
                         const NodeSlice& nodes);

// Mean or sum over variables (or none), sum over time and nodes, mean over batch and ensemble. The
// sums over nodes are made in fp64 and meet those of other ranks here. fp64: (), or (V).
at::Tensor reduce_field(const at::Tensor& field, OverVariables reduction, const NodeSlice& nodes);

}  // namespace aifs::train
