// SPDX-License-Identifier: Apache-2.0
// Small networks of every family, for tests of what divides them over ranks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/base/graph.h"
#include "tests/support/toy_layout.h"

namespace aifs::test {

// Prime numbers of data nodes, which no number of ranks divides.
inline constexpr int64_t kFamilyData = 19, kFamilyOther = 7, kFamilyMembers = 2;

struct NetworkFamily {
  std::string name;
  std::function<void(model::ModelOptions&)> change;
  bool projected_noise = false;
  bool two_datasets = false;  // "data" and "other"

  model::NetworkPlan plan(const model::FieldLayout& layout = toy_layout()) const;
  // Fused MLPs cannot be.
  bool can_be_sliced() const { return plan().options.kernels != model::KernelChoice::kFused; }
  // Has the node sets "data", "other", "hidden", "middle" and "deep".
  static graph::Graph graph();
  // (2, 2, E, N, 6) of each dataset.
  std::vector<at::Tensor> inputs() const;
  // Returns the noise of a forecast step, for all nodes; undefined without noise.
  at::Tensor noise(const model::EncoderProcessorDecoder& network, int64_t step) const;
};

// Three layers, and one on each finer mesh of a hierarchy.
const std::vector<NetworkFamily>& network_families();

}  // namespace aifs::test
