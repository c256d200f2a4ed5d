// SPDX-License-Identifier: Apache-2.0
// Weighted point-wise losses (anemoi-training 0.17, losses): a field of errors times its scalers,
// one after another in their order, then the mean over variables, the sum over time and grid, and
// the mean over batch and ensemble. Nothing divides by the sum of weights: scalers carry it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/scalers.h"

namespace aifs::train {

enum class LossKind { kMse, kRmse, kMae, kHuber, kLogCosh };

// How the variable axis is reduced.
enum class OverVariables { kMean, kSum, kKeep };

// Partial sums over this rank's nodes to sums over all nodes; see parallel/autograd.h.
using SumOverRanks = std::function<at::Tensor(const at::Tensor&)>;

struct PointwiseLoss {
  LossKind kind = LossKind::kMse;
  double huber_delta = 1.0;
  // NaN in prediction or target count as no error there (the point still counts in every mean).
  bool ignore_nans = false;
  std::vector<Scaler> scalers;
  SumOverRanks sum_over_ranks = {};  // empty: this rank has all nodes

  // prediction (B, T, E, N, V_out), target of the same shape or with E = 1, both normalised and in
  // model-output order. Scalar, or (V_out) with kKeep; fp64, like the sum over the grid.
  at::Tensor operator()(const at::Tensor& prediction, const at::Tensor& target,
                        OverVariables reduction = OverVariables::kMean) const;

  // The same without the scalers that act on an axis, or without one by name.
  PointwiseLoss without(Axis axis) const;
  PointwiseLoss without(const std::string& scaler) const;
  // For fields that hold some output columns only: scalers over variables are reduced to them.
  PointwiseLoss for_columns(const std::vector<int64_t>& columns) const;

  // The field of errors before scalers; RMSE takes its root after the reduction.
  at::Tensor field(const at::Tensor& prediction, const at::Tensor& target) const;
};

// The weighted sum of point-wise losses, each of them over all output variables or some (Anemoi's
// CombinedLoss of variable-mapped losses).
struct CombinedLoss {
  // A predicted variable and the column of the target it is compared with.
  struct ColumnPair {
    int64_t predicted = 0, target = 0;
  };
  struct Term {
    PointwiseLoss loss;  // its scalers cover all V_out, whatever the columns
    double weight = 1.0;
    std::vector<ColumnPair> columns = {};  // empty: all, the target is in model-output order
  };
  std::vector<Term> terms;

  // As PointwiseLoss; the target may have other columns if every term says which ones it takes.
  // With kKeep, variables that no term looks at get 0. Without terms the loss is 0.
  at::Tensor operator()(const at::Tensor& prediction, const at::Tensor& target,
                        OverVariables reduction = OverVariables::kMean) const;

  CombinedLoss without(Axis axis) const;
  CombinedLoss without(const std::string& scaler) const;
  // What the terms say about some predicted columns; terms that look at none of them are left out.
  CombinedLoss for_columns(const std::vector<int64_t>& columns) const;
};

}  // namespace aifs::train

template <>
struct aifs::EnumNames<aifs::train::LossKind> {
  using K = aifs::train::LossKind;
  static constexpr std::array<std::pair<K, const char*>, 5> table{{{K::kMse, "mse"},
                                                                   {K::kRmse, "rmse"},
                                                                   {K::kMae, "mae"},
                                                                   {K::kHuber, "huber"},
                                                                   {K::kLogCosh, "logcosh"}}};
};
