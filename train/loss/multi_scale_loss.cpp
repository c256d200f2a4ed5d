// SPDX-License-Identifier: Apache-2.0
#include "train/loss/multi_scale_loss.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/check.h"
#include "core/npz.h"

namespace aifs::train {

MultiScaleLoss::MultiScaleLoss(std::vector<SparseRowsPtr> smoothers, std::vector<double> weights,
                               LossPtr loss)
    : smoothers_(std::move(smoothers)), weights_(std::move(weights)), loss_(std::move(loss)) {
  AIFS_CHECK(!weights_.empty() && smoothers_.size() == weights_.size(), smoothers_.size(),
             " smoothers and ", weights_.size(), " weights");
}

at::Tensor MultiScaleLoss::operator()(const at::Tensor& prediction, const at::Tensor& target,
                                      const LossCall& call) const {
  LossCall inner = call;
  inner.nodes = {};
  if (inner.nan_mask && inner.nan_mask->factor.size(kGrid) > 1) {
    inner.nan_mask->factor = call.nodes.gather(inner.nan_mask->factor);
  }
  const at::Tensor x = call.nodes.gather(prediction), y = call.nodes.gather(target);
  at::Tensor sum, coarse_x, coarse_y;
  for (size_t k = 0; k < smoothers_.size(); ++k) {
    const SparseRowsPtr& smoother = smoothers_[k];
    const at::Tensor fine_x = smoother ? smoother->apply(x) : x;
    const at::Tensor fine_y = smoother ? smoother->apply(y) : y;
    const at::Tensor value =
        weights_[k] * (k == 0 ? (*loss_)(fine_x, fine_y, inner)
                              : (*loss_)(fine_x - coarse_x, fine_y - coarse_y, inner));
    sum = k == 0 ? value : sum + value;
    coarse_x = fine_x;
    coarse_y = fine_y;
  }
  return sum;
}

void SmootherOptions::bind(config::Binder& b) {
  b.integer("neighbours", neighbours, {.min = 1, .max = 4096}, {"nearest nodes that are averaged"});
  b.number("sigma", sigma, {.min = 1e-9}, {"width of the Gaussian that weighs them", "rad"});
}

std::vector<SmootherOptions> smoother_series(int64_t scales, int64_t neighbours, double sigma,
                                             double factor) {
  constexpr double kDigits = 1e5;
  std::vector<SmootherOptions> series;
  for (int64_t i = scales - 1; i >= 0; --i) {
    const double growth = std::pow(factor, static_cast<double>(i));
    series.push_back({static_cast<int64_t>(static_cast<double>(neighbours) * growth),
                      std::nearbyint(sigma * growth * kDigits) / kDigits});
  }
  return series;
}

std::vector<SparseRowsPtr> smoothers_on(const graph::NodeSet& nodes,
                                        const std::vector<SmootherOptions>& smoothers) {
  std::vector<SparseRowsPtr> matrices;
  for (const SmootherOptions& smoother : smoothers)
    matrices.push_back(gaussian_smoother(nodes, nodes, smoother.neighbours, smoother.sigma));
  matrices.push_back(nullptr);
  return matrices;
}

std::vector<SparseRowsPtr> smoothers_of(const std::vector<std::string>& files, int64_t num_nodes) {
  std::vector<SparseRowsPtr> matrices;
  for (const std::string& file : files) {
    if (file.empty()) {
      matrices.push_back(nullptr);
      continue;
    }
    const SparseEntries m = read_sparse_npz(file, num_nodes, num_nodes);
    matrices.push_back(
        std::make_shared<const SparseRows>(m.row, m.column, m.value, num_nodes, num_nodes));
  }
  return matrices;
}

}  // namespace aifs::train
