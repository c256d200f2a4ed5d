// SPDX-License-Identifier: Apache-2.0
// The run that aifs-train would make of a configuration, halted before its first step, so that
// single steps of it can be measured. Its data are the first batch, again and again.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "app/run/wiring.h"

namespace aifs::bench {

class StepRun {
 public:
  // `mesh` outlives it; the sizes of `config.parallel` are those of `mesh`. Throws ConfigError,
  // DataError. Collective.
  StepRun(app::RunConfig config, const parallel::ProcessMesh& mesh, at::Device device);

  const app::Run& run() const { return run_; }
  train::TrainingStep& step() { return trainer_->step(); }
  // Forecast steps of a training step.
  int64_t rollout() const { return rollout_; }

  // A training step; its loss before the update. Collective.
  double train();
  // The forecast of a batch, without loss and gradients. Collective.
  void forecast();
  // Loss and gradients of a batch, without an update. Where each rank has all values. Collective.
  struct Gradients {
    double loss = 0.0;
    at::Tensor values;  // fp64 on the CPU, all in a row
  };
  Gradients gradients();

 private:
  app::Run run_;
  std::unique_ptr<train::Trainer> trainer_;
  int64_t rollout_;
  std::vector<train::Batches> batches_;  // of a step
  int64_t num_steps_ = 0;
};

}  // namespace aifs::bench
