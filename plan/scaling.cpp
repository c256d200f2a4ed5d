// SPDX-License-Identifier: Apache-2.0
#include "plan/scaling.h"

namespace aifs::plan {

namespace {

ScalingPoint point_of(const StepPlan& plan) {
  const TimePlan& time = plan.time;
  return {.ranks = plan.layout.ranks(),
          .step_s = time.total_s(),
          .compute_s = time.compute_s + time.optimizer_s,
          .exposed_s = time.exposed_s,
          .memory = plan.memory.device()};
}

}  // namespace

Scaling strong_scaling(StepInput input, const graph::Graph& graph, int64_t most) {
  Scaling scaling{"strong", {}};
  const int64_t hidden = graph.nodes(input.network.model.meshes().front()).num_nodes();
  input.layout.data = 1;
  for (int64_t model = 1; model <= hidden; model *= 2) {
    input.layout.model = model;
    if (input.layout.ranks() > most) break;
    ScalingPoint point = point_of(plan_step(input, graph));
    const ScalingPoint& first = scaling.points.empty() ? point : scaling.points.front();
    point.efficiency = first.step_s * static_cast<double>(first.ranks) /
                       (point.step_s * static_cast<double>(point.ranks));
    scaling.points.push_back(point);
  }
  return scaling;
}

Scaling weak_scaling(StepInput input, const graph::Graph& graph, int64_t most) {
  Scaling scaling{"weak", {}};
  const Division division = divide(input, graph);
  for (input.layout.data = 1; input.layout.ranks() <= most; input.layout.data *= 2) {
    ScalingPoint point = point_of(plan_step(input, division));
    if (!scaling.points.empty()) point.efficiency = scaling.points.front().step_s / point.step_s;
    scaling.points.push_back(point);
  }
  return scaling;
}

}  // namespace aifs::plan
