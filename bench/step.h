// SPDX-License-Identifier: Apache-2.0
// Times of whole training steps (train/training_step.h) of the run that aifs-train would make of a
// configuration, or of its forecasts alone.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/run/run_config.h"
#include "parallel/process_mesh.h"

namespace aifs::bench {

struct StepBenchOptions {
  std::string name = {};  // of the case
  const parallel::ProcessMesh& mesh;
  at::Device device = at::kCPU;
  int64_t warm_up = 5, steps = 20;  // passes are recorded as CUDA graphs in the second step
  bool forward_only = false;
  bool profile = false;    // one more step, its time by kernel ("kernel_times" in the result)
  std::string trace = {};  // and a timeline of it
  bool roofline = false;   // one more step, the least time of its kernels ("roofline")
};

// Collective over the ranks of the mesh, which has the sizes of `config.parallel`; times are this
// rank's, memory is the largest of any. {case, step_ms (median), spread ((95 % - 5 %) / median),
// min_ms, peak_gib (with registered gradients), ...}. With `roofline` what roofline.h says at the
// limits of the device ("roofline") and at what it sustains ("roofline_sustained"), each with the
// share of the median step, of_step. Throws ConfigError, DataError, or Error if a step is not
// finite.
nlohmann::ordered_json time_steps(const app::RunConfig& config, const StepBenchOptions& options);

// True if check_equality() can be asked: the data can be had on another grid, and each rank has all
// values.
bool can_check(const app::RunConfig& config);

// Loss and gradients of the first batch on a small graph (O16, 2 levels), on `device` in the
// configuration's precision and over the ranks of `mesh`, against one CPU in fp32 that recomputes
// nothing: {loss_relative, gradient_cosine, gradient_rms, within}.
nlohmann::ordered_json check_equality(const app::RunConfig& config, const at::Device& device,
                                      const parallel::ProcessMesh& mesh);

}  // namespace aifs::bench
