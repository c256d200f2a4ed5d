// SPDX-License-Identifier: Apache-2.0
#include "bench/step_run.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "core/check.h"

namespace aifs::bench {

namespace {

app::RunConfig on_resident_data(app::RunConfig config) {
  if (config.parallel.sizes.pipeline > 1) {
    throw ConfigError("parallel.pipeline", "steps of a pipeline are not timed on their own",
                      "leave it out, or time a run with run.mode synthetic");
  }
  config.run.mode = app::Mode::kSynthetic;
  return config;
}

}  // namespace

StepRun::StepRun(app::RunConfig config, const parallel::ProcessMesh& mesh, at::Device device)
    : run_(on_resident_data(std::move(config)), mesh, device) {
  run_.share();
  run_.build();
  trainer_ = run_.make_trainer();
  const train::TrainOptions& options = run_.config().train;
  rollout_ = train::rollout_at(options.rollout, /*epoch=*/0, /*step=*/0);
  batches_.assign(static_cast<size_t>(options.accumulate_batches), trainer_->first_batch(rollout_));
  step().begin();
}

double StepRun::train() {
  const train::TrainingStep::Result result =
      step().run(num_steps_++, batches_, rollout_, trainer_->next_rate());
  AIFS_CHECK(result.updated, "loss or gradients of step ", num_steps_, " are not finite");
  return result.loss;
}

void StepRun::forecast() {
  const at::NoGradGuard no_grad;
  step().forecast(step().values_of(batches_.front()), {.rollout = rollout_},
                  [](const train::ForecastStep&) {});
}

StepRun::Gradients StepRun::gradients() {
  train::TrainingStep& step = trainer_->step();
  step.start(0);
  const double loss = step.run_pass(batches_.front(), {.rollout = rollout_});
  step.end_passes();
  step.finish_gradients();
  return {loss, run_.parameters().flat_gradients().cpu().to(at::kDouble)};
}

}  // namespace aifs::bench
