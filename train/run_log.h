// SPDX-License-Identifier: Apache-2.0
// What a run leaves behind to be read: metrics.jsonl, validation.jsonl, TensorBoard files and lines
// of the log. Only the main rank has one. Nothing here throws: a file that cannot be written is
// reported, and training goes on.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "train/options.h"
#include "train/output/metrics_log.h"
#include "train/output/progress.h"
#include "train/output/tensorboard.h"
#include "train/validation.h"

namespace aifs::train {

// Says where a line of a log belongs.
struct LogPosition {
  int64_t step = 0, epoch = 0;
};

class RunLog {
 public:
  // On a resumed run, what files say of steps after `resume_step` is removed; -1: a new run.
  // `last_step` is the end of the progress bar (0: unknown), `first_step` where it begins.
  RunLog(const fs::path& run_dir, const LogOptions& options, int64_t resume_step,
         int64_t first_step, int64_t last_step);

  // A line of metrics.jsonl; `line` has "step", "loss", "lr" and "step_s".
  void write_step(const nlohmann::ordered_json& line);
  // Scores of a validation, or why there are none.
  void write_validation(LogPosition position, const ValidationResult& result,
                        const data::VariableTable& variables);
  // The step of the last validation in a validation.jsonl that the run goes on with, -1 if it has
  // none; nothing if there was no such file.
  std::optional<int64_t> last_validation_step() const { return validation_.last_step(); }
  // Validations of this run that failed.
  int64_t num_failed_validations() const { return num_failed_validations_; }
  // Takes the progress bar away, so that a message can be written.
  void clear_progress() { progress_.clear(); }

 private:
  void scalar(const std::string& tag, double value, int64_t step);
  // Writes the mean ratios of a dataset; returns them as text: "  6h 0.812  12h 0.901".
  std::string write_ratios(const DatasetScores& dataset, const std::string& place, int64_t step);

  JsonLines metrics_, validation_;
  std::unique_ptr<TensorBoardWriter> tensorboard_;
  Progress progress_;
  int64_t num_failed_validations_ = 0;
  std::set<std::string> constants_named_;  // datasets whose constant variables were named
};

}  // namespace aifs::train
