// SPDX-License-Identifier: Apache-2.0
// The loop as a whole, on data and a network that fit in a test.
#include "train/trainer.h"

#include <nlohmann/json.hpp>

#include <sstream>

#include "parallel/comm_virtual.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/train/small_training.h"

using namespace aifs;
using namespace aifs::train;
using test::SmallTraining;

namespace {

TrainerOptions options_in(const fs::path& run_dir, int64_t max_steps) {
  TrainerOptions options;
  options.train.max_steps = max_steps;
  options.train.validation.at_end = false;
  options.optimizer.schedule.kind = ScheduleKind::kConstant;
  options.optimizer.schedule.lr = 1e-2;
  options.optimizer.schedule.warmup_steps = 0;
  options.log.tensorboard = false;
  options.log.progress_bar = false;
  options.log.every_steps = 1000000;
  options.run_dir = run_dir;
  make_directories(run_dir);
  options.checkpoint_meta.config_json = "{}";
  return options;
}

TrainerParts parts_of(SmallTraining& t, int64_t batch_size = 2,
                      const parallel::ProcessMesh& mesh = test::single_mesh()) {
  return {.source = t.source,
          .variables = t.variables,
          .window = t.window,
          .sampling = {.seed = 1,
                       .batch_size = batch_size,
                       .num_groups = mesh.sizes().data,
                       .group = mesh.replica()},
          .loading = {.nodes = {0, test::kCells}},
          .parameters = t.parameters,
          .network = *t.network,
          .loss = std::make_shared<PointwiseTerm>(LossKind::kMse, 1.0, ElementaryOptions()),
          .mesh = mesh};
}

std::vector<nlohmann::json> metrics(const fs::path& run_dir) {
  std::istringstream text(read_file(run_dir / "metrics.jsonl"));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);)
    lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("a run resumed in the middle of an epoch ends with the same bits", "[trainer]") {
  const test::TemporaryFolder folder;
  SmallTraining whole, first, second;  // 12 rows: 10 samples, 5 batches an epoch
  Trainer(options_in(folder.path() / "whole", 13), parts_of(whole)).run();

  const fs::path parted = folder.path() / "parted";
  Trainer(options_in(parted, 7), parts_of(first)).run();
  Trainer resumed(options_in(parted, 13), parts_of(second));
  const auto checkpoint = find_latest_checkpoint(parted / "checkpoints");
  REQUIRE((checkpoint->state.epoch == 1 && checkpoint->state.batch_in_epoch == 2));
  resumed.load(*checkpoint);
  resumed.share_state(/*resumed=*/true);
  REQUIRE(resumed.run() == Outcome::kFinished);
  REQUIRE(at::equal(whole.parameters.flat_values(), second.parameters.flat_values()));
  REQUIRE(resumed.state().step == 13);
  const auto a = metrics(folder.path() / "whole"), b = metrics(parted);
  REQUIRE(a.size() == 13);
  REQUIRE(b.size() == 13);
  for (size_t i = 0; i < a.size(); ++i)
    REQUIRE(a[i]["loss"] == b[i]["loss"]);
}

TEST_CASE("a run resumed where epochs are shorter goes on with the next epoch", "[trainer]") {
  const test::TemporaryFolder folder;
  SmallTraining first, second;
  Trainer(options_in(folder.path(), 4), parts_of(first)).run();
  Trainer resumed(options_in(folder.path(), 6), parts_of(second, 10));  // one batch an epoch
  resumed.load(*find_latest_checkpoint(folder.path() / "checkpoints"));
  resumed.share_state(/*resumed=*/true);
  REQUIRE(resumed.run() == Outcome::kFinished);
  REQUIRE(resumed.state().step == 6);
  REQUIRE(resumed.state().epoch == 3);
}

TEST_CASE("a request to stop ends the run after the step, with a checkpoint", "[trainer]") {
  const test::TemporaryFolder folder;
  SmallTraining t;
  TrainerOptions options = options_in(folder.path(), 100);
  int64_t step = 0;
  options.at_step = [&](int64_t number) { step = number; };
  options.should_stop = [&] { return step == 3; };
  REQUIRE(Trainer(options, parts_of(t)).run() == Outcome::kInterrupted);
  REQUIRE(find_latest_checkpoint(folder.path() / "checkpoints")->state.step == 3);
}

TEST_CASE("epochs limit a run too, and short batches accumulate to a step", "[trainer]") {
  const test::TemporaryFolder folder;
  SmallTraining t;
  TrainerOptions options = options_in(folder.path(), 0);
  options.train.max_epochs = 2;
  options.train.accumulate_batches = 2;  // 5 batches: steps of 2, 2 and 1
  Trainer trainer(options, parts_of(t));
  REQUIRE(trainer.run() == Outcome::kFinished);
  REQUIRE(trainer.state().step == 6);
  const auto lines = metrics(folder.path());
  REQUIRE(lines.at(0)["samples"] == 4);
  REQUIRE(lines.at(2)["samples"] == 2);
}

TEST_CASE("accumulated batches are one large batch", "[trainer]") {
  const test::TemporaryFolder folder;
  SmallTraining large(12, 3, at::kDouble), parted(12, 3, at::kDouble);
  Trainer(options_in(folder.path() / "large", 1), parts_of(large, 10)).run();
  TrainerOptions options = options_in(folder.path() / "parted", 1);
  options.train.accumulate_batches = 5;
  Trainer(options, parts_of(parted, 2)).run();
  const at::Tensor difference =
      large.parameters.flat_gradients() - parted.parameters.flat_gradients();
  REQUIRE(difference.abs().max().item<double>() <= 1e-12);
  REQUIRE(large.parameters.flat_gradients().abs().max().item<double>() > 1e-3);
}

TEST_CASE("a loss that is not finite ends the run and names step, date and way out", "[trainer]") {
  const test::TemporaryFolder folder;
  SmallTraining t;
  t.dataset->infinite_row = 6;
  TrainerOptions options = options_in(folder.path(), 100);
  options.checkpoint.every_steps = 1;
  try {
    Trainer(options, parts_of(t, 1)).run();
    FAIL("no error");
  } catch (const NumericalError& error) {
    REQUIRE_THAT(error.what(),
                 ContainsSubstring("sample of 2020-01-02T") && ContainsSubstring("the loss is "));
  }
}

TEST_CASE("a loss that is not finite on one replica is skipped by all, or ends all",
          "[trainer][parallel]") {
  const test::TemporaryFolder folder;
  for (const OnNonfinite choice : {OnNonfinite::kSkip, OnNonfinite::kStop}) {
    const fs::path run = folder.path() / enum_name(choice);
    std::array<at::Tensor, 2> weights;
    std::array<int, 2> failed{};
    parallel::run_as_threads(2, [&](parallel::Communicator& world) {
      const parallel::ProcessMesh mesh(world, {1, 2});
      const auto rank = static_cast<size_t>(world.rank());
      SmallTraining t;
      t.dataset->infinite_row = 6;
      TrainerOptions options = options_in(run, 5);  // an epoch: one sample at a time on each
      options.train.on_nonfinite = choice;
      try {
        Trainer(options, parts_of(t, 1, mesh)).run();
        weights[rank] = t.parameters.flat_values().detach().clone();
      } catch (const NumericalError&) {
        failed[rank] = 1;
      }
    });
    const bool stops = choice == OnNonfinite::kStop;
    REQUIRE(failed == std::array<int, 2>{stops, stops});
    if (stops) continue;
    REQUIRE(at::equal(weights[0], weights[1]));
    REQUIRE(weights[0].isfinite().all().item<bool>());
    const auto lines = metrics(run);
    REQUIRE(lines.size() == 5);
    const auto skipped = std::count_if(lines.begin(), lines.end(),
                                       [](const auto& line) { return line.contains("skipped"); });
    REQUIRE((skipped >= 2 && skipped < 5));  // two inputs and a truth, on one replica or the other
  }
}

TEST_CASE("weights that are not finite are never written", "[trainer]") {
  const test::TemporaryFolder folder;
  SmallTraining t;
  TrainerOptions options = options_in(folder.path(), 3);
  options.should_stop = [&] {
    t.parameters.flat_values()[0].fill_(std::numeric_limits<float>::quiet_NaN());
    return true;
  };
  REQUIRE_THROWS_AS(Trainer(options, parts_of(t)).run(), NumericalError);
  REQUIRE_FALSE(has_checkpoints(folder.path() / "checkpoints"));
}

TEST_CASE("NaN in the data end the run and name variable and date", "[trainer]") {
  const test::TemporaryFolder folder;
  SmallTraining t;
  t.dataset->nan_row = 6;
  REQUIRE_THROWS_WITH(Trainer(options_in(folder.path(), 100), parts_of(t)).run(),
                      ContainsSubstring("'a' is NaN on 2020-01-02T12:00:00"));
}

TEST_CASE("a rollout longer than the data is refused at the start, even if it comes later",
          "[trainer]") {
  const data::DatasetInfo info = SmallTraining(6).dataset->info();  // 2 inputs: up to 4 steps
  const Window window{2, 1, 1};
  REQUIRE_NOTHROW(check_training_samples(info, window, 4));
  REQUIRE_THROWS_AS(check_training_samples(info, window, 5), DataError);
  const test::TemporaryFolder folder;
  SmallTraining t(6);
  TrainerOptions options = options_in(folder.path(), 2);
  options.train.rollout = {.start = 1, .epoch_increment = 1, .maximum = 9};
  REQUIRE_THROWS_AS(Trainer(options, parts_of(t)).run(), DataError);
  options.train.max_epochs = 1;  // never gets there
  REQUIRE(Trainer(options, parts_of(t)).run() == Outcome::kFinished);
}

TEST_CASE("a run folder that disappears stops neither steps nor checkpoints", "[trainer]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  SmallTraining t;
  TrainerOptions options = options_in(run, 6);
  options.log.tensorboard = true;
  options.should_stop = [&] { return fs::remove_all(run), false; };
  REQUIRE(Trainer(options, parts_of(t)).run() == Outcome::kFinished);
  REQUIRE(find_latest_checkpoint(run / "checkpoints")->state.step == 6);
}
