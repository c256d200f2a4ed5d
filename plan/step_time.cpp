// SPDX-License-Identifier: Apache-2.0
// Every operation takes as long as its products or its bytes need, whichever is more (a roofline),
// and no less than a launch. Limits are those of the card times the share that steps have reached.
#include <algorithm>

#include "plan/step_plan.h"

namespace aifs::plan {

namespace {

double product_limit(const CardOptions& card, Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kFp32:
      return card.fp32_tflops;
    case Arithmetic::kTf32:
      return card.tf32_tflops;
    case Arithmetic::kHalf:
      return card.half_tflops;
  }
  return card.fp32_tflops;
}

}  // namespace

PassTimes pass_times(const StepInput& input, const PartCost& part) {
  const CardOptions& card = input.machine.card;
  const double flops_per_s = product_limit(card, input.arithmetic) * 1e12 * card.product_efficiency;
  const double bytes_per_s = card.memory_tb_s * 1e12 * card.memory_efficiency;
  PassTimes times;
  for (const Work& work : part.work) {
    const double once =
        std::max({work.flops / flops_per_s, work.bytes / bytes_per_s, card.operation_us * 1e-6});
    const int64_t again = work.forward_runs - 1 + (input.recompute_steps ? 1 : 0);
    times.forward_s += once;
    times.backward_s += static_cast<double>(again + 2) * once;  // of operands and of weights
  }
  const auto steps = static_cast<double>(input.rollout);
  return {steps * times.forward_s, steps * times.backward_s};
}

double compute_s(const StepInput& input, const NetworkCost& cost, double& backward_s) {
  double forward_s = 0.0;
  backward_s = 0.0;
  for (const PartCost* part : cost.parts()) {
    const PassTimes times = pass_times(input, *part);
    forward_s += times.forward_s;
    backward_s += times.backward_s;
  }
  return forward_s + backward_s;
}

double optimizer_s(const StepInput& input, const NetworkCost& cost) {
  const int64_t shards = input.layout.shards(input.machine.ranks_per_node);
  // Gradients are cleared, clipped (read and written) and read; weights and states read and
  // written.
  const auto passes = static_cast<double>(6 + 2 * input.optimizer_states + (input.average ? 2 : 0));
  const double bytes = passes * static_cast<double>(cost.flat_elements()) *
                       static_cast<double>(input.network.types.weight) /
                       static_cast<double>(shards);
  const CardOptions& card = input.machine.card;
  return bytes / (card.memory_tb_s * 1e12 * card.memory_efficiency);
}

}  // namespace aifs::plan
