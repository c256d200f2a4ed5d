// SPDX-License-Identifier: Apache-2.0
// The loop as a whole, on data and a network that fit in a test.
#include "train/trainer.h"

#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <new>
#include <nlohmann/json.hpp>

#include <sstream>

#include "parallel/backends/comm_virtual.h"
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
          .loss = std::make_shared<PointwiseTerm>(mse_error(), ElementaryOptions()),
          .mesh = mesh};
}

std::vector<nlohmann::json> metrics(const fs::path& run_dir, const char* file = "metrics.jsonl") {
  std::istringstream text(read_file(run_dir / file));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);)
    lines.push_back(nlohmann::json::parse(line));
  return lines;
}

// Validates on the training data, one step ahead.
Validation validation_of(const SmallTraining& t, const ValidationOptions& options,
                         const parallel::ProcessMesh& mesh = test::single_mesh()) {
  return {options,
          {.source = t.source,
           .variables = t.variables,
           .window = t.window,
           .timestep_s = 6 * 3600,
           .cell_weights = std::vector<float>(test::kCells, 1.0f),
           .nodes = {0, test::kCells},
           .mesh = mesh,
           .dtype = t.parameters.dtype(),
           .longest_rollout = 3}};
}

int64_t saved_step(const fs::path& run_dir) {
  const auto found = find_latest_checkpoint(run_dir / "checkpoints");
  return found ? found->state.step : -1;
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

TEST_CASE("checkpoints that are written meanwhile are those of runs that wait", "[trainer]") {
  const test::TemporaryFolder folder;
  const auto run = [&](const char* name, bool background) {
    SmallTraining t;
    TrainerOptions options = options_in(folder.path() / name, 7);
    options.optimizer.average = {AverageKind::kExponential, 0.5};
    options.checkpoint = {.every_steps = 1, .keep = 0, .background = background};
    REQUIRE(Trainer(options, parts_of(t)).run() == Outcome::kFinished);
  };
  run("waits", false);
  run("goes on", true);
  for (const char* step : {"1", "2", "3", "4", "5", "6", "7"}) {
    for (const char* file : {"parameters.safetensors", "optimizer.safetensors"}) {
      const fs::path path = fs::path("checkpoints") / concat("step-0000000", step) / file;
      REQUIRE(read_file(folder.path() / "waits" / path) ==
              read_file(folder.path() / "goes on" / path));
    }
  }
}

TEST_CASE("checkpoints are due by the clock of the main rank", "[trainer]") {
  const test::TemporaryFolder folder;
  SmallTraining t;
  TrainerOptions options = options_in(folder.path(), 6);
  // Every step takes longer than that.
  options.checkpoint = {.every_minutes = 1e-9, .at_end = false, .keep = 0};
  REQUIRE(Trainer(options, parts_of(t)).run() == Outcome::kFinished);
  for (const char* step : {"1", "2", "3", "4", "5", "6"})
    REQUIRE(fs::exists(folder.path() / "checkpoints" / concat("step-0000000", step)));
  const test::TemporaryFolder other;
  SmallTraining again;
  options = options_in(other.path(), 6);
  options.checkpoint = {.every_minutes = 1e9, .at_end = false};
  REQUIRE(Trainer(options, parts_of(again)).run() == Outcome::kFinished);
  REQUIRE_FALSE(has_checkpoints(other.path() / "checkpoints"));
}

TEST_CASE("a checkpoint that fails meanwhile is tried again when the next one is due",
          "[trainer]") {
  const test::TemporaryFolder folder;
  const fs::path checkpoints = folder.path() / "checkpoints";
  SmallTraining t;
  TrainerOptions options = options_in(folder.path(), 5);
  options.checkpoint = {.every_steps = 2, .at_end = false};
  options.at_step = [&](int64_t step) {
    if (step == 1) write_file_atomic(checkpoints, "not a folder");
    if (step == 4) fs::remove(checkpoints);
  };
  SECTION("training goes on") {
    REQUIRE(Trainer(options, parts_of(t)).run() == Outcome::kFinished);
    REQUIRE(saved_step(folder.path()) == 4);
    REQUIRE_FALSE(fs::exists(checkpoints / "step-00000002"));
  }
  SECTION("one that is required is an error") {
    options.at_step = [&](int64_t step) {
      if (step == 1) write_file_atomic(checkpoints, "not a folder");
    };
    options.checkpoint.at_end = true;
    REQUIRE_THROWS_WITH(Trainer(options, parts_of(t)).run(), ContainsSubstring("checkpoints"));
  }
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

// A row that the third batch of a replica needs, and none before it.
int64_t row_of_third_batch(const SmallTraining& t, int64_t groups, int64_t group) {
  const data::DatasetInfo& info = t.dataset->info();
  const data::Sampler sampler(data::usable_anchors(info.num_rows(), {}, t.window.offsets(1)),
                              {.seed = 1, .batch_size = 1, .num_groups = groups, .group = group});
  const auto batches = sampler.epoch(0);
  for (const int64_t offset : {-1, 0, 1}) {
    const int64_t row = batches[2][0] + offset;
    const auto needs = [&](const std::vector<int64_t>& batch) {
      return std::abs(batch[0] - row) <= 1;
    };
    if (!needs(batches[0]) && !needs(batches[1])) return row;
  }
  throw Error("no such row");
}

TEST_CASE("data that cannot be read end the run with a checkpoint of the last whole step",
          "[trainer]") {
  const test::TemporaryFolder folder;
  SmallTraining whole(40), broken(40), repaired(40);
  Trainer(options_in(folder.path() / "whole", 5), parts_of(whole, 1)).run();
  const fs::path run = folder.path() / "broken";
  broken.dataset->lost_row = row_of_third_batch(broken, 1, 0);
  TrainerOptions options = options_in(run, 5);
  REQUIRE_THROWS_WITH(
      Trainer(options, parts_of(broken, 1)).run(),
      ContainsSubstring(concat("'waves/", broken.dataset->lost_row, "' is missing")));
  const auto checkpoint = find_latest_checkpoint(run / "checkpoints");
  REQUIRE(checkpoint);
  REQUIRE(checkpoint->state.step == 2);
  REQUIRE(checkpoint->state.batch_in_epoch == 2);
  // With the data back, the run goes on as if nothing had happened.
  Trainer resumed(options, parts_of(repaired, 1));
  resumed.load(*checkpoint);
  resumed.share_state(/*resumed=*/true);
  REQUIRE(resumed.run() == Outcome::kFinished);
  REQUIRE(at::equal(whole.parameters.flat_values(), repaired.parameters.flat_values()));
}

TEST_CASE("data that one replica cannot read end all of them with a checkpoint",
          "[trainer][parallel]") {
  const test::TemporaryFolder folder;
  std::array<std::string, 2> reported;
  std::array<int, 2> codes{};
  parallel::run_as_threads(2, [&](parallel::Communicator& world) {
    const parallel::ProcessMesh mesh(world, {1, 2});
    const auto rank = static_cast<size_t>(world.rank());
    SmallTraining t(40);
    if (rank == 1) t.dataset->lost_row = row_of_third_batch(t, 2, 1);
    TrainerOptions options = options_in(folder.path(), 5);
    options.failure = {[](const std::exception&) { return 3; },
                       [&](const std::exception& error) { reported[rank] = error.what(); }};
    try {
      Trainer(options, parts_of(t, 1, mesh)).run();
    } catch (const parallel::FailedTogether& error) {
      codes[rank] = error.code();
    }
  });
  REQUIRE(codes == std::array<int, 2>{3, 3});
  REQUIRE(reported[0].empty());
  REQUIRE_THAT(reported[1], ContainsSubstring("is missing"));
  REQUIRE(saved_step(folder.path()) == 2);
}

TEST_CASE("a validation that fails costs no step, and ends the run only if it is to", "[trainer]") {
  const test::TemporaryFolder folder;
  for (const OnFailedValidation choice :
       {OnFailedValidation::kContinue, OnFailedValidation::kStop}) {
    const fs::path run = folder.path() / enum_name(choice);
    SmallTraining t, other;
    other.dataset->lost_row = 5;
    TrainerOptions options = options_in(run, 4);
    options.train.validation.every_steps = 2;
    options.train.validation.on_failure = choice;
    options.checkpoint.every_steps = 2;
    const Validation validation = validation_of(other, options.train.validation);
    TrainerParts parts = parts_of(t);
    parts.validation = &validation;
    if (choice == OnFailedValidation::kStop) {
      REQUIRE_THROWS_WITH(Trainer(options, parts).run(),
                          ContainsSubstring("the validation at step 2 failed"));
    } else {
      REQUIRE(Trainer(options, parts).run() == Outcome::kFinished);
    }
    REQUIRE(saved_step(run) == (choice == OnFailedValidation::kStop ? 2 : 4));
    const auto lines = metrics(run, "validation.jsonl");
    REQUIRE(lines.at(0)["step"] == 2);
    REQUIRE_THAT(lines.at(0)["failure"].get<std::string>(), ContainsSubstring("waves/5"));
  }
}

TEST_CASE("a stop during a validation leaves at once, and the resumed run makes up for it",
          "[trainer]") {
  const test::TemporaryFolder folder;
  SmallTraining whole, first, second;
  const auto run = [&](SmallTraining& t, const fs::path& dir, bool stops, bool resume) {
    TrainerOptions options = options_in(dir, 6);
    options.train.validation.every_steps = 3;
    options.checkpoint.every_steps = 3;
    int64_t step = 0, asked = 0;
    options.at_step = [&](int64_t number) { step = number; };
    // The first question of step 3 is that after its batch; later ones are the validation's.
    options.should_stop = [&] { return stops && step == 3 && ++asked > 1; };
    const Validation validation = validation_of(t, options.train.validation);
    TrainerParts parts = parts_of(t);
    parts.validation = &validation;
    Trainer trainer(options, parts);
    if (resume) {
      trainer.load(*find_latest_checkpoint(dir / "checkpoints"));
      trainer.share_state(/*resumed=*/true);
    }
    return trainer.run();
  };
  REQUIRE(run(whole, folder.path() / "whole", false, false) == Outcome::kFinished);
  const fs::path parted = folder.path() / "parted";
  REQUIRE(run(first, parted, true, false) == Outcome::kInterrupted);
  REQUIRE(saved_step(parted) == 3);
  REQUIRE(metrics(parted, "validation.jsonl").empty());
  REQUIRE(run(second, parted, false, true) == Outcome::kFinished);
  REQUIRE(read_file(parted / "validation.jsonl") ==
          read_file(folder.path() / "whole" / "validation.jsonl"));
  REQUIRE(at::equal(whole.parameters.flat_values(), second.parameters.flat_values()));
}

TEST_CASE("a stop while data are slow to come gives the step up", "[trainer]") {
  const test::TemporaryFolder folder;
  SmallTraining t;
  t.dataset->slow_row = 11;
  TrainerOptions options = options_in(folder.path(), 100);
  const auto start = std::chrono::steady_clock::now();
  int64_t step = 0;
  options.at_step = [&](int64_t number) { step = number; };
  options.should_stop = [&] {
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start;
    return since.count() > 1.0;
  };
  REQUIRE(Trainer(options, parts_of(t, 1)).run() == Outcome::kInterrupted);
  const auto state = find_latest_checkpoint(folder.path() / "checkpoints")->state;
  REQUIRE(state.step == step - 1);
  REQUIRE(state.batch_in_epoch == step - 1);
}

TEST_CASE("the last step of an epoch is a mean over its batches, or as the reference has it",
          "[trainer]") {
  const test::TemporaryFolder folder;
  std::map<Accumulation, at::Tensor> gradients;
  for (const Accumulation choice : {Accumulation::kMean, Accumulation::kAnemoi}) {
    SmallTraining t(12, 3, at::kDouble);
    TrainerOptions options = options_in(folder.path() / enum_name(choice), 2);
    options.optimizer.schedule.lr = 0.0;   // the same weights in both steps
    options.train.accumulate_batches = 7;  // of 10: steps of 7 and of 3
    options.train.accumulation = choice;
    Trainer(options, parts_of(t, 1)).run();
    gradients[choice] = t.parameters.flat_gradients().clone();
  }
  const at::Tensor &mean = gradients[Accumulation::kMean],
                   &anemoi = gradients[Accumulation::kAnemoi];
  REQUIRE(mean.abs().max().item<double>() > 1e-3);
  REQUIRE(at::allclose(mean * (3.0 / 7.0), anemoi, 1e-12, 1e-14));
}

TEST_CASE("a rollout that grows by steps grows within an epoch, resumed or not", "[trainer]") {
  const test::TemporaryFolder folder;
  SmallTraining whole, first, second;
  const auto options_of = [&](const fs::path& dir, int64_t steps) {
    TrainerOptions options = options_in(dir, steps);
    options.train.rollout = {.start = 1, .maximum = 3, .step_increment = 2};
    return options;
  };
  Trainer(options_of(folder.path() / "whole", 7), parts_of(whole)).run();
  std::vector<int64_t> rollouts;
  for (const auto& line : metrics(folder.path() / "whole"))
    rollouts.push_back(line["rollout"].get<int64_t>());
  REQUIRE(rollouts == std::vector<int64_t>{1, 1, 2, 2, 3, 3, 3});
  const fs::path parted = folder.path() / "parted";
  Trainer(options_of(parted, 3), parts_of(first)).run();
  Trainer resumed(options_of(parted, 7), parts_of(second));
  resumed.load(*find_latest_checkpoint(parted / "checkpoints"));
  resumed.share_state(/*resumed=*/true);
  REQUIRE(resumed.run() == Outcome::kFinished);
  REQUIRE(at::equal(whole.parameters.flat_values(), second.parameters.flat_values()));
}

namespace {

// Throws in the passes of one training step, or in validations.
class FailingLoss : public Loss {
 public:
  enum class Where { kForward, kBackward, kValidation };
  FailingLoss(Where where, std::function<bool()> now) : where_(where), now_(std::move(now)) {}

  at::Tensor operator()(const at::Tensor& prediction, const at::Tensor& truth,
                        const LossCall& call) const override {
    const bool validates = !at::GradMode::is_enabled();
    if (validates == (where_ == Where::kValidation) && now_()) {
      if (where_ != Where::kBackward) throw std::bad_alloc();
      prediction.register_hook([](const at::Tensor&) { throw std::bad_alloc(); });
    }
    return mse_(prediction, truth, call);
  }

 private:
  PointwiseTerm mse_{mse_error(), {}};
  Where where_;
  std::function<bool()> now_;
};

// NaN now and then.
class NanLoss : public Loss {
 public:
  explicit NanLoss(std::function<bool()> now) : now_(std::move(now)) {}
  at::Tensor operator()(const at::Tensor& prediction, const at::Tensor& truth,
                        const LossCall& call) const override {
    return mse_(prediction, truth, call) * (now_() ? std::nan("") : 1.0);
  }

 private:
  PointwiseTerm mse_{mse_error(), {}};
  std::function<bool()> now_;
};

bool same_weights(const fs::path& a, const fs::path& b) {
  return read_file(a / "parameters.safetensors") == read_file(b / "parameters.safetensors");
}

}  // namespace

TEST_CASE("an error inside a validation of averaged weights leaves the live ones", "[trainer]") {
  const test::TemporaryFolder folder;
  const auto options_of = [&](const fs::path& dir) {
    TrainerOptions options = options_in(dir, 6);
    options.optimizer.average = {AverageKind::kExponential, 0.5};
    options.checkpoint.every_steps = 3;
    return options;
  };
  SmallTraining plain;
  Trainer(options_of(folder.path() / "plain"), parts_of(plain)).run();
  const auto saved_by = [&](const char* name, int64_t step) {
    return folder.path() / name / concat("checkpoints/step-0000000", step);
  };
  SECTION("an error of a forecast is a failed validation") {
    SmallTraining t;
    TrainerOptions options = options_of(folder.path() / "failed");
    options.train.validation.every_steps = 3;
    options.train.validation.every_epochs = 0;
    const Validation validation = validation_of(t, options.train.validation);
    TrainerParts parts = parts_of(t);
    parts.validation = &validation;
    parts.loss =
        std::make_shared<FailingLoss>(FailingLoss::Where::kValidation, [] { return true; });
    REQUIRE(Trainer(options, parts).run() == Outcome::kFinished);
    REQUIRE(same_weights(saved_by("plain", 6), saved_by("failed", 6)));
    const auto lines = metrics(options.run_dir, "validation.jsonl");
    REQUIRE(lines.size() == 2);
    REQUIRE(lines[0]["failure"] == "out of memory");
  }
  SECTION("any other error ends the run with a checkpoint of live weights") {
    SmallTraining t;
    TrainerOptions options = options_of(folder.path() / "ended");
    options.checkpoint.every_steps = 0;
    options.train.validation.every_steps = 3;
    options.should_stop = [] {
      if (!at::GradMode::is_enabled()) throw std::runtime_error("of a validation");
      return false;
    };
    const Validation validation = validation_of(t, options.train.validation);
    TrainerParts parts = parts_of(t);
    parts.validation = &validation;
    REQUIRE_THROWS_WITH(Trainer(options, parts).run(), "of a validation");
    REQUIRE(same_weights(saved_by("plain", 3), saved_by("ended", 3)));
  }
}

TEST_CASE("a rank that runs out of memory in a pass ends all with a checkpoint",
          "[trainer][parallel]") {
  const test::TemporaryFolder folder;
  using Where = FailingLoss::Where;
  for (const auto& [where, num_ranks, rank_of_error, accumulate, sharding] :
       {std::tuple{Where::kForward, 1, 0, 1, Sharding::kNone},
        std::tuple{Where::kBackward, 1, 0, 1, Sharding::kNone},
        std::tuple{Where::kForward, 2, 1, 1, Sharding::kNone},
        std::tuple{Where::kBackward, 2, 0, 1, Sharding::kNone},
        std::tuple{Where::kBackward, 2, 1, 2, Sharding::kNone},
        std::tuple{Where::kBackward, 2, 1, 2, Sharding::kGradients}}) {
    for (const int64_t bad_step : {1, 3}) {  // the first one learns in which order gradients come
      const fs::path run = folder.path() / concat(static_cast<int>(where), num_ranks, rank_of_error,
                                                  accumulate, bad_step, static_cast<int>(sharding));
      INFO(run.filename().string());
      std::vector<int> codes(static_cast<size_t>(num_ranks), 0);
      parallel::run_as_threads(num_ranks, [&](parallel::Communicator& world) {
        c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
        const parallel::ProcessMesh mesh(world, {1, world.size()});
        SmallTraining t(40);
        TrainerOptions options = options_in(run, 5);
        options.train.accumulate_batches = accumulate;
        options.sharding.states = sharding;
        options.reduction.bucket_mb = 1e-4;  // several
        options.failure = {[](const std::exception&) { return 1; }, [](const std::exception&) {}};
        int64_t step = 0;
        options.at_step = [&](int64_t number) { step = number; };
        TrainerParts parts = parts_of(t, 1, mesh);
        parts.loss = std::make_shared<FailingLoss>(
            where, [&] { return step == bad_step && world.rank() == rank_of_error; });
        int& code = codes[static_cast<size_t>(world.rank())];
        try {
          Trainer(options, parts).run();
        } catch (const parallel::FailedTogether& error) {
          code = error.code();
        } catch (const std::bad_alloc&) {
          code = 1;  // of one rank
        }
      });
      REQUIRE(codes == std::vector<int>(static_cast<size_t>(num_ranks), 1));
      REQUIRE(saved_step(run) == (bad_step > 1 ? bad_step - 1 : -1));
    }
  }
}

TEST_CASE("a validation that ends a run of several ranks costs no step", "[trainer][parallel]") {
  const test::TemporaryFolder folder;
  std::array<int, 2> codes{};
  parallel::run_as_threads(2, [&](parallel::Communicator& world) {
    const parallel::ProcessMesh mesh(world, {1, 2});
    SmallTraining t, other;
    if (world.rank() == 1) other.dataset->lost_row = 5;
    TrainerOptions options = options_in(folder.path(), 4);
    options.train.validation.every_steps = 2;
    options.train.validation.on_failure = OnFailedValidation::kStop;
    options.failure = {[](const std::exception&) { return 3; }, [](const std::exception&) {}};
    const Validation validation = validation_of(other, options.train.validation, mesh);
    TrainerParts parts = parts_of(t, 1, mesh);
    parts.validation = &validation;
    try {
      Trainer(options, parts).run();
    } catch (const parallel::FailedTogether& error) {
      codes[static_cast<size_t>(world.rank())] = error.code();
    }
  });
  REQUIRE(codes == std::array<int, 2>{3, 3});
  REQUIRE(saved_step(folder.path()) == 2);
}

TEST_CASE(
    "a loss that is not finite though weights and input are leaves a checkpoint, and "
    "removes none",
    "[trainer]") {
  const test::TemporaryFolder folder;
  const auto run = [&](int64_t bad_step, bool resume) {
    SmallTraining t;
    TrainerOptions options = options_in(folder.path(), 9);
    options.checkpoint.every_steps = 2;
    options.checkpoint.keep = 1;
    int64_t step = 0;
    options.at_step = [&](int64_t number) { step = number; };
    TrainerParts parts = parts_of(t);
    parts.loss = std::make_shared<NanLoss>([&] { return step == bad_step; });
    Trainer trainer(options, parts);
    if (resume) {
      trainer.load(*find_latest_checkpoint(folder.path() / "checkpoints"));
      trainer.share_state(/*resumed=*/true);
    }
    try {
      trainer.run();
    } catch (const NumericalError& error) {
      return error.hint();
    }
    return std::string();
  };
  REQUIRE_THAT(run(6, false), ContainsSubstring("the last checkpoint is of step 5") &&
                                  ContainsSubstring("resume from the one of step 4 by name"));
  REQUIRE(saved_step(folder.path()) == 5);
  REQUIRE(fs::exists(folder.path() / "checkpoints/step-00000004/COMPLETE"));
  // Repeats the step: nothing new to keep.
  REQUIRE_THAT(run(6, true), ContainsSubstring("step 5") && ContainsSubstring("an earlier one"));
  REQUIRE(run(0, true).empty());
  REQUIRE(saved_step(folder.path()) == 9);
}

TEST_CASE("a validation at the end that a stop has cut off is made up for, steps or epochs",
          "[trainer]") {
  for (const bool by_epochs : {false, true}) {
    const test::TemporaryFolder folder;
    const auto run = [&](bool stops, bool resume) {
      SmallTraining t;
      TrainerOptions options = options_in(folder.path(), by_epochs ? 0 : 5);
      options.train.max_epochs = by_epochs ? 1 : 0;
      options.train.validation.every_epochs = 0;
      options.train.validation.at_end = true;
      options.should_stop = [&] { return stops && !at::GradMode::is_enabled(); };
      const Validation validation = validation_of(t, options.train.validation);
      TrainerParts parts = parts_of(t);
      parts.validation = &validation;
      Trainer trainer(options, parts);
      if (resume) {
        trainer.load(*find_latest_checkpoint(folder.path() / "checkpoints"));
        trainer.share_state(/*resumed=*/true);
      }
      return trainer.run();
    };
    REQUIRE(run(true, false) == Outcome::kInterrupted);
    REQUIRE(metrics(folder.path(), "validation.jsonl").empty());
    REQUIRE(run(false, true) == Outcome::kFinished);
    REQUIRE(metrics(folder.path(), "validation.jsonl").size() == 1);
    REQUIRE(run(false, true) == Outcome::kFinished);  // once is enough
    REQUIRE(metrics(folder.path(), "validation.jsonl").size() == 1);
  }
}
