// SPDX-License-Identifier: Apache-2.0
// A loss of each scale of the fields: smoothers S_1 ... S_K from coarse to fine give S_1 x, then
// the increments S_k x - S_(k-1) x; the weighted losses of all are added. Every rank that shares a
// sample computes it from the whole field.
#pragma once

#include "core/config.h"
#include "train/loss/loss_term.h"
#include "train/loss/sparse_rows.h"

namespace aifs::train {

class MultiScaleLoss : public Loss {
 public:
  // One smoother per scale; null: the field as it is. As many weights.
  MultiScaleLoss(std::vector<SparseRowsPtr> smoothers, std::vector<double> weights, LossPtr loss);

  at::Tensor operator()(const at::Tensor& prediction, const at::Tensor& target,
                        const LossCall& call = {}) const override;

 private:
  std::vector<SparseRowsPtr> smoothers_;
  std::vector<double> weights_;
  LossPtr loss_;
};

// A smoother: the mean of so many nearest nodes with a Gaussian weight.
struct SmootherOptions {
  int64_t neighbours = 4;
  double sigma = 0.1;  // radians
  void bind(config::Binder& b);
};

// `scales` smoothers of neighbours * factor^i nodes and width sigma * factor^i (rounded to five
// digits), from coarse to fine.
std::vector<SmootherOptions> smoother_series(int64_t scales, int64_t neighbours, double sigma,
                                             double factor);

// The matrices of smoothers from coarse to fine, and the identity at the end.
std::vector<SparseRowsPtr> smoothers_on(const graph::NodeSet& nodes,
                                        const std::vector<SmootherOptions>& smoothers);

// Matrices of .npz files, used as they are; null for an empty name. Throws DataError naming the
// file that cannot be read or is not num_nodes x num_nodes.
std::vector<SparseRowsPtr> smoothers_of(const std::vector<std::string>& files, int64_t num_nodes);

}  // namespace aifs::train
