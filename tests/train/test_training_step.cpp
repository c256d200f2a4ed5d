// SPDX-License-Identifier: Apache-2.0
#include "train/training_step.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/train/small_training.h"
#include "train/trainer.h"

using namespace aifs;
using namespace aifs::train;
using test::SmallTraining;

namespace {

constexpr double kRate = 1e-2;

LossPtr squared_errors() {
  return std::make_shared<PointwiseTerm>(mse_error(), ElementaryOptions());
}

StepParts step_parts_of(SmallTraining& t) {
  return {.parameters = t.parameters,
          .network = *t.network,
          .datasets = {{t.variables, squared_errors()}},
          .window = t.window,
          .mesh = test::single_mesh()};
}

Batches batch_of(const SmallTraining& t, const std::vector<int64_t>& rows, int64_t rollout) {
  const data::LoaderOptions loading{.nodes = {0, test::kCells}};
  return {data::read_batch(t.source, loading, {rows, t.window.offsets(rollout)})};
}

}  // namespace

TEST_CASE("run() takes the trainer's steps, to the bit", "[training_step]") {
  const test::TemporaryFolder folder;
  for (const ClipKind clip : {ClipKind::kValue, ClipKind::kNorm}) {
    SmallTraining by_trainer, by_steps;
    TrainerOptions options;
    options.train.max_steps = 2;  // of two batches each: an epoch has five
    options.train.accumulate_batches = 2;
    options.train.validation.at_end = false;
    options.train.rollout = {.start = 2, .maximum = 2};
    options.optimizer.schedule = {.kind = ScheduleKind::kConstant, .lr = kRate, .warmup_steps = 0};
    options.optimizer.clip = clip;
    options.optimizer.clip_limit = 0.1;
    options.log.tensorboard = options.log.progress_bar = false;
    options.checkpoint.at_end = false;
    options.resident_data = true;
    options.run_dir = folder.path();
    Trainer trainer(options, {.source = by_trainer.source,
                              .variables = by_trainer.variables,
                              .window = by_trainer.window,
                              .sampling = {.seed = 1, .batch_size = 2},
                              .loading = {.nodes = {0, test::kCells}},
                              .parameters = by_trainer.parameters,
                              .network = *by_trainer.network,
                              .loss = squared_errors(),
                              .mesh = test::single_mesh()});
    const std::vector<Batches> batches(2, trainer.first_batch(/*rollout=*/2));
    trainer.run();

    TrainingStep step({.train = options.train, .optimizer = options.optimizer},
                      step_parts_of(by_steps));
    step.begin();
    for (int64_t i = 0; i < options.train.max_steps; ++i) {
      const TrainingStep::Result result = step.run(i, batches, /*rollout=*/2, kRate);
      REQUIRE(result.updated);
      REQUIRE((result.gradient_norm > 0.0) == (clip == ClipKind::kNorm));
    }
    REQUIRE(at::equal(by_trainer.parameters.flat_values(), by_steps.parameters.flat_values()));
    REQUIRE_FALSE(
        at::equal(by_steps.parameters.flat_values(), SmallTraining().parameters.flat_values()));
  }
}

TEST_CASE("a step on two batches is one on both together", "[training_step]") {
  SmallTraining parted(12, 3, at::kDouble), whole(12, 3, at::kDouble);
  TrainingStep in_parts({}, step_parts_of(parted)), at_once({}, step_parts_of(whole));
  const auto two =
      in_parts.run(0, {batch_of(parted, {2, 4}, 1), batch_of(parted, {3, 7}, 1)}, 1, kRate);
  const auto one = at_once.run(0, {batch_of(whole, {2, 4, 3, 7}, 1)}, 1, kRate);
  REQUIRE(two.loss == Approx(one.loss).epsilon(1e-12));
  const at::Tensor gradients = whole.parameters.flat_gradients();
  REQUIRE((parted.parameters.flat_gradients() - gradients).abs().max().item<double>() <= 1e-12);
  REQUIRE(gradients.abs().max().item<double>() > 1e-3);
}

TEST_CASE("a loss or gradients that are not finite leave the weights alone", "[training_step]") {
  SmallTraining t;
  TrainingStep step({}, step_parts_of(t));
  step.begin();
  Batches bad = batch_of(t, {2}, 1);
  bad[0].values.select(1, 2).fill_(std::numeric_limits<float>::infinity());
  const at::Tensor before = t.parameters.flat_values().detach().clone();
  const auto result = step.run(0, {batch_of(t, {3}, 1), bad}, 1, kRate);
  REQUIRE_FALSE(result.updated);
  REQUIRE_FALSE(std::isfinite(result.loss));
  REQUIRE(at::equal(t.parameters.flat_values(), before));
  REQUIRE(step.optimizer().num_steps() == 0);
  REQUIRE_FALSE(step.run(0, {bad, batch_of(t, {3}, 1)}, 1, kRate).updated);
  REQUIRE(at::equal(t.parameters.flat_values(), before));
  REQUIRE(step.run(1, {batch_of(t, {3}, 1)}, 1, kRate).updated);
}
