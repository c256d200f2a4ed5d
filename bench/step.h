// SPDX-License-Identifier: Apache-2.0
// Times of whole training steps: zero gradients, forward, loss, backward, clip by value, AdamW; or
// of the forward pass alone.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "bench/step_case.h"

namespace aifs::bench {

struct StepBenchOptions {
  const parallel::ProcessMesh& mesh;
  at::Device device = at::kCPU;
  int64_t warm_up = 5, steps = 20;
  bool forward_only = false;
  bool capture = false;  // gradients as one CUDA graph; not with forward_only
  // Gradients reduced together during the backward pass, 0: all at its end; as in training on one
  // host unless given.
  std::optional<double> bucket_mb = {};
  std::string graph_cache = {};
  bool profile = false;    // one more step, its time by kernel ("kernel_times" in the result)
  std::string trace = {};  // and a timeline of it
  bool roofline = false;   // one more step, the least time of its kernels ("roofline")
};

// Collective over the ranks of the mesh; times are this rank's, memory is the largest of any.
// {case, step_ms (median), spread ((95 % - 5 %) / median), min_ms, peak_gib (with registered
// gradients), ...}. With `roofline` what roofline.h says at the limits of the device ("roofline")
// and at what it sustains ("roofline_sustained"), each with the share of the median step, of_step.
nlohmann::ordered_json time_steps(const StepCase& step_case, const StepBenchOptions& options);

// Loss and gradients of a case's network on a small graph (O16, 2 levels), on `device` in its
// precision and over the ranks of `mesh`, against one CPU in fp32: {loss_relative, gradient_cosine,
// gradient_rms, within}.
nlohmann::ordered_json check_equality(const StepCase& step_case, const at::Device& device,
                                      const parallel::ProcessMesh& mesh);

}  // namespace aifs::bench
