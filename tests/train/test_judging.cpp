// SPDX-License-Identifier: Apache-2.0
// Runs that are judged by the scores of their validations: early stop, and the best checkpoints.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/train/small_training.h"
#include "train/trainer.h"

using namespace aifs;
using namespace aifs::train;
using test::SmallTraining;

namespace {

// A run that validates after every second step and whose losses go up after some steps: its
// learning rate is far too large.
TrainerOptions judged_options(const fs::path& run_dir, int64_t max_steps, double rate) {
  TrainerOptions options;
  options.train.max_steps = max_steps;
  options.train.validation.every_steps = 2;
  options.train.validation.every_epochs = 0;
  options.train.validation.at_end = false;
  options.train.validation.rollout = 1;
  options.optimizer.schedule.kind = ScheduleKind::kConstant;
  options.optimizer.schedule.lr = rate;
  options.optimizer.schedule.warmup_steps = 0;
  options.checkpoint.every_steps = 3;
  options.checkpoint.keep = 1;
  options.log.tensorboard = false;
  options.log.progress_bar = false;
  options.log.csv = true;
  options.log.mlflow.dir = (run_dir / "mlflow").string();
  options.run_dir = run_dir;
  make_directories(run_dir);
  options.checkpoint_meta.config_json = "{}";
  return options;
}

struct JudgedRun {
  Outcome outcome = Outcome::kFinished;
  StopCount count;
  int64_t step = 0;
};

// As one rank of `mesh`, each with samples of its own; `resume`: from the newest checkpoint.
JudgedRun judged_run(const TrainerOptions& options, bool resume = false,
                     const parallel::ProcessMesh& mesh = test::single_mesh()) {
  SmallTraining t;
  const Validation validation(options.train.validation,
                              {.source = t.source,
                               .variables = t.variables,
                               .window = t.window,
                               .timestep_s = 6 * 3600,
                               .cell_weights = std::vector<float>(test::kCells, 1.0f),
                               .nodes = {0, test::kCells},
                               .mesh = mesh,
                               .dtype = t.parameters.dtype()});
  TrainerParts parts{.source = t.source,
                     .variables = t.variables,
                     .window = t.window,
                     .sampling = {.seed = 1,
                                  .batch_size = 1,
                                  .num_groups = mesh.sizes().data,
                                  .group = mesh.replica()},
                     .loading = {.nodes = {0, test::kCells}},
                     .parameters = t.parameters,
                     .network = *t.network,
                     .loss = std::make_shared<PointwiseTerm>(mse_error(), ElementaryOptions()),
                     .validation = &validation,
                     .mesh = mesh};
  Trainer trainer(options, parts);
  if (resume) {
    trainer.load(*find_latest_checkpoint(options.run_dir / "checkpoints"));
    trainer.share_state(/*resumed=*/true);
  }
  const Outcome outcome = trainer.run();
  return {outcome, trainer.state().stop_count, trainer.state().step};
}

std::vector<std::pair<int64_t, double>> losses_of(const fs::path& run_dir) {
  std::istringstream text(read_file(run_dir / "validation.jsonl"));
  std::vector<std::pair<int64_t, double>> losses;
  for (std::string line; std::getline(text, line);) {
    const auto json = nlohmann::json::parse(line);
    losses.emplace_back(json["step"], json["loss"]);
  }
  return losses;
}

EarlyStopOptions patient(int64_t patience) {
  return {.by = {.score = "loss"}, .patience = patience, .min_delta = 1e9};  // no second gain
}

std::vector<std::string> checkpoints_in(const fs::path& run_dir) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(run_dir / "checkpoints"))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("a run whose validations gain nothing stops early, with a checkpoint", "[judging]") {
  const test::TemporaryFolder folder;
  TrainerOptions options = judged_options(folder.path(), 40, 1e-3);
  options.train.early_stop = patient(3);
  options.checkpoint.at_end = false;
  const JudgedRun run = judged_run(options);
  REQUIRE(run.outcome == Outcome::kStoppedEarly);
  REQUIRE(run.step == 8);  // validations at 2, 4, 6 and 8
  REQUIRE(run.count.without_gain == 3);
  REQUIRE(run.count.best == losses_of(folder.path()).front().second);
  REQUIRE(find_latest_checkpoint(folder.path() / "checkpoints")->state.step == 8);
  // It is over; with more patience it goes on.
  REQUIRE(judged_run(options, /*resume=*/true).step == 8);
  options.train.early_stop = patient(4);
  const JudgedRun longer = judged_run(options, /*resume=*/true);
  REQUIRE(longer.outcome == Outcome::kStoppedEarly);
  REQUIRE(longer.step == 10);
}

TEST_CASE("a run that was interrupted stops where one that was not does, with equal counts",
          "[judging]") {
  const test::TemporaryFolder folder;
  TrainerOptions whole = judged_options(folder.path() / "whole", 40, 1e-3);
  whole.train.early_stop = patient(4);
  const JudgedRun wanted = judged_run(whole);
  REQUIRE(wanted.step == 10);
  // With the checkpoint before a validation of its step, and between validations.
  for (const int64_t first : {4, 5, 6}) {
    const fs::path parted = folder.path() / std::to_string(first);
    TrainerOptions options = judged_options(parted, first, 1e-3);
    options.train.early_stop = patient(4);
    REQUIRE(judged_run(options).outcome == Outcome::kFinished);
    options.train.max_steps = 40;
    const JudgedRun run = judged_run(options, /*resume=*/true);
    REQUIRE(run.outcome == Outcome::kStoppedEarly);
    REQUIRE(run.step == wanted.step);
    REQUIRE(run.count.without_gain == wanted.count.without_gain);
    REQUIRE(run.count.last_step == wanted.count.last_step);
    REQUIRE(run.count.best == wanted.count.best);
    REQUIRE(read_file(parted / "validation.jsonl") ==
            read_file(folder.path() / "whole" / "validation.jsonl"));
  }
}

TEST_CASE("all ranks stop at one step", "[judging][parallel]") {
  const test::TemporaryFolder folder;
  std::array<int64_t, 2> steps{};
  parallel::run_as_threads(2, [&](parallel::Communicator& world) {
    const parallel::ProcessMesh mesh(world, {1, 2});
    TrainerOptions options = judged_options(folder.path(), 40, 1e-3);
    options.train.early_stop = patient(2);
    options.checkpoint.keep_best.number = 1;
    steps[static_cast<size_t>(world.rank())] = judged_run(options, false, mesh).step;
  });
  REQUIRE(steps == std::array<int64_t, 2>{6, 6});
}

TEST_CASE("the checkpoints with the best scores are kept besides the newest", "[judging]") {
  const test::TemporaryFolder folder;
  TrainerOptions options = judged_options(folder.path(), 30, 0.3);
  options.checkpoint.keep_best.number = 2;
  const bool in_parts = GENERATE(false, true);
  if (in_parts) {
    options.train.max_steps = 13;
    judged_run(options);
    options.train.max_steps = 30;
  }
  judged_run(options, in_parts);
  std::vector<std::pair<int64_t, double>> losses = losses_of(folder.path());
  REQUIRE(losses.size() == 15);
  std::stable_sort(losses.begin(), losses.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto list = nlohmann::json::parse(read_file(folder.path() / "checkpoints" / "best.json"));
  std::vector<std::string> wanted{"step-00000030"};
  for (size_t i = 0; i < 2; ++i) {
    REQUIRE(list["kept"][i]["step"] == losses[i].first);
    REQUIRE(list["kept"][i]["value"] == losses[i].second);
    wanted.push_back(checkpoint_path("", losses[i].first).string());
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  REQUIRE(checkpoints_in(folder.path()) == wanted);
  const fs::path best = pointed_at(folder.path() / "checkpoints" / "best");
  REQUIRE(inspect_checkpoint(best).state.step == losses[0].first);
}

TEST_CASE("curves and tables have the figures of the steps and validations", "[judging]") {
  const test::TemporaryFolder folder;
  TrainerOptions options = judged_options(folder.path(), 4, 1e-3);
  judged_run(options);
  std::istringstream table(read_file(folder.path() / "metrics.csv"));
  std::string line;
  std::getline(table, line);
  REQUIRE(line ==
          "step,epoch,loss,lr,step_s,data_wait_s,samples,rollout,gradient_norm,skipped,loss_scale,"
          "samples_per_s,tflops_per_s,mfu,sustained_samples_per_s,goodput");
  std::getline(table, line);
  REQUIRE(line.starts_with("1,0,"));
  const std::string scores = read_file(folder.path() / "validation.csv");
  REQUIRE(scores.starts_with("step,epoch,dataset,variable,lead_time_h,region,dates,rmse,"));
  REQUIRE_THAT(scores, ContainsSubstring("\n2,0,,a,6.0,global,"));
  REQUIRE_THAT(scores, ContainsSubstring("\n4,0,,d,6.0,global,"));
  fs::path curve;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path() / "mlflow"))
    if (entry.path().filename() == "rmse_b_6h") curve = entry.path();
  std::istringstream points(read_file(curve));
  int64_t count = 0;
  while (std::getline(points, line))
    ++count;
  REQUIRE(count == 2);
}
