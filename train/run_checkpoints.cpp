// SPDX-License-Identifier: Apache-2.0
#include "train/run_checkpoints.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <system_error>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/log.h"
#include "core/seconds_since.h"
#include "core/time.h"
#include "train/error_text.h"

namespace aifs::train {

CheckpointCourse course_until(const CheckpointInfo& checkpoint, const fs::path& folder) {
  CheckpointCourse course = checkpoint.meta.course.value_or(CheckpointCourse{});
  if (!checkpoint.meta.course) {
    for (const int64_t step : checkpoint_steps(folder)) {
      struct stat info {};
      if (::stat((checkpoint_path(folder, step) / "manifest.json").c_str(), &info) == 0)
        course.push_back({step, info.st_mtime});
    }
    std::reverse(course.begin(), course.end());
  }
  std::erase_if(course, [&](const CourseEntry& entry) {
    return entry.step > checkpoint.state.step ||
           !folder_exists(checkpoint_path(folder, entry.step));
  });
  return course;
}

void RunCheckpoints::begin(int64_t resume_step) {
  const KeepBestOptions& best = setup_.options.keep_best;
  if (best.is_on() && setup_.mesh.is_main()) best_.emplace(folder(), best, resume_step);
}

void RunCheckpoints::take_up(const CheckpointInfo& checkpoint) {
  course_ = course_until(checkpoint, folder());
}

CheckpointCourse RunCheckpoints::kept_of(CheckpointCourse course) const {
  const CheckpointOptions& options = setup_.options;
  // Somebody may have removed some.
  if (options.keep > 0) {
    std::erase_if(course, [&](const CourseEntry& entry) {
      std::error_code error;  // of a file system that does not answer now: it may be there
      const bool is_there = fs::exists(checkpoint_path(folder(), entry.step), error);
      return entry != course.back() && !is_there && !error;
    });
  }
  return entries_to_keep(course, {.newest = best_ ? best_->keep_of(options.keep) : options.keep,
                                  .every_steps = options.keep_every_steps,
                                  .every_hours = options.keep_every_hours,
                                  .spared = best_ ? best_->steps() : std::vector<int64_t>()});
}

void RunCheckpoints::keep_if_best(const LoopState& state, double score, RunLog* log) {
  if (!parallel::on_any_rank(setup_.mesh.world(), best_ && best_->would_keep(score))) return;
  write(state, {.waits = true, .removes_old = true}, log);
  if (!best_ || last_step_ != state.step) return;
  // A run that goes on from a checkpoint of another has none of its own yet.
  if (!folder_exists(checkpoint_path(folder(), state.step))) return;
  best_->add(state.step, score);
  course_ = kept_of(course_);
  if (removes_any()) remove_old_checkpoints(folder(), state.step, steps_of(course_));
  log::info("checkpoint of step ", state.step, " is kept: ", setup_.options.keep_best.by.score, " ",
            score, best_->steps().front() == state.step ? ", the best so far" : ", among the best");
}

RunCheckpoints::~RunCheckpoints() {
  finish(nullptr);
}

void RunCheckpoints::prepare() {
  if (!setup_.options.background || !setup_.mesh.is_main() || copies_) return;
  const auto num_states = static_cast<int64_t>(setup_.step.optimizer().states().size());
  int64_t bytes = 0;
  for (const int64_t file : checkpoint_file_bytes(setup_.parameters, num_states))
    bytes += file;
  try {
    copies_ = std::make_unique<HostCopies>(bytes, setup_.step.shards().local_values().device());
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    log::warning("the host has no ", bytes >> 20, " MiB to keep for checkpoints: it will be asked ",
                 "for them each time");
  }
}

void RunCheckpoints::write(const LoopState& state, const CheckpointWrite& how, RunLog* log) {
  const PartTimer::Scope scope(setup_.step.timer(), Part::kCheckpoint);
  const auto start = std::chrono::steady_clock::now();
  settle(log);
  if (last_step_ == state.step) return;
  const bool bad = !are_finite({setup_.step.shards().local_values()});
  if (parallel::on_any_rank(setup_.mesh.world(), bad)) {
    throw NumericalError(
        concat("the weights are not finite after step ", state.step, ": no checkpoint is written"),
        last_step_ >= 0
            ? concat("resume from the one of step ", last_step_, " with a smaller learning rate")
            : std::string("try a smaller learning rate, or a longer warm-up"));
  }
  CheckpointTensors tensors = gather();
  if (setup_.mesh.is_main()) begin_file(std::move(tensors), state, how);
  last_step_ = state.step;
  if (writing_) writing_->stood_still = seconds_since(start);
  if (setup_.options.background && !how.required && !how.waits) return;
  settle(log);
  if (how.required && error_) std::rethrow_exception(error_);
}

CheckpointTensors RunCheckpoints::gather() {
  ParameterShards& shards = setup_.step.shards();
  shards.fetch_all();
  const auto whole = [&](const at::Tensor& own) { return shards.whole(own); };
  ToHost to_host = on_host;
  if (setup_.options.background) {
    prepare();
    if (copies_) copies_->clear();
    to_host = [&](const at::Tensor& t) { return copies_ ? copies_->copy(t) : on_host(t.clone()); };
  }
  CheckpointTensors tensors = gather_tensors(setup_.parameters, setup_.step.optimizer(),
                                             setup_.mesh.is_main(), whole, to_host);
  if (copies_) copies_->end(), copies_->wait();
  shards.release_all();
  return tensors;
}

void RunCheckpoints::begin_file(CheckpointTensors tensors, const LoopState& state,
                                const CheckpointWrite& how) {
  CheckpointMeta meta = setup_.meta;
  const auto now_s = static_cast<int64_t>(std::time(nullptr));
  meta.time_utc = format_date(now_s);
  CheckpointCourse course = extended(course_, {state.step, now_s});
  if (how.removes_old) course = kept_of(std::move(course));
  meta.course = course;
  const bool removes = how.removes_old && removes_any();
  auto write = [tensors = std::move(tensors), state, meta, folder = folder(),
                kept = removes ? KeptSteps(steps_of(course)) : std::nullopt] {
    return write_checkpoint(folder, state, tensors, meta, kept);
  };
  writing_ = {state.step, how.required, std::move(course),
              std::async(std::launch::async, std::move(write)), 0.0};
}

void RunCheckpoints::report(RunLog* log) {
  if (!writing_) return;
  if (writing_->path.wait_for(std::chrono::seconds(0)) == std::future_status::ready) finish(log);
}

void RunCheckpoints::finish(RunLog* log) {
  if (!writing_) return;
  const std::shared_ptr<void> work = setup_.mesh.world().at_work("writing a checkpoint");
  Writing writing = std::move(*writing_);
  writing_.reset();
  writing.path.wait();
  if (log) log->clear_progress();
  error_ = nullptr;
  try {
    const fs::path path = writing.path.get();
    written_step_ = writing.step;
    course_ = std::move(writing.course);
    const auto waited = static_cast<int64_t>(std::lround(1000.0 * writing.stood_still));
    log::info("checkpoint '", path.string(), "', training waited ", waited, " ms");
  } catch (const std::exception& error) {
    error_ = std::current_exception();
    if (writing.required) return;  // whoever asked for it gets the error
    log::error("no checkpoint at step ", writing.step, ": ", error_text(error),
               "; training goes on, the next one will be tried");
  }
}

void RunCheckpoints::settle(RunLog* log) {
  finish(log);
  // All ranks know it: whether there is another try at this step is for all to decide alike.
  const bool lost = setup_.mesh.is_main() && written_step_ != last_step_;
  if (parallel::on_any_rank(setup_.mesh.world(), lost)) {
    last_step_ = written_step_;
  } else {
    written_step_ = last_step_;
  }
}

}  // namespace aifs::train
