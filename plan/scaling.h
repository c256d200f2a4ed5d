// SPDX-License-Identifier: Apache-2.0
// How a step behaves as ranks are added.
//   strong   one sample over more and more ranks (parallel.model grows): S = T1 / TN, E = S / N
//   weak     more and more replicas, each as at the start (parallel.data grows): E = T1 / TN
#pragma once

#include "plan/step_plan.h"

namespace aifs::plan {

struct ScalingPoint {
  int64_t ranks = 1;
  double step_s = 0, compute_s = 0, exposed_s = 0;  // exposed: communication that nothing hides
  double memory = 0;                                // bytes of a rank
  double efficiency = 1;
};

struct Scaling {
  std::string name;  // "strong", "weak"
  std::vector<ScalingPoint> points;
};

// At 1, 2, 4 ... times the ranks of one sample, up to `most`. Strong scaling partitions the graph
// anew for each, and ends where the mesh has no nodes left.
Scaling strong_scaling(StepInput input, const graph::Graph& graph, int64_t most);
Scaling weak_scaling(StepInput input, const graph::Graph& graph, int64_t most);

}  // namespace aifs::plan
