// SPDX-License-Identifier: Apache-2.0
// What a run leaves behind to be read: metrics.jsonl, validation.jsonl, the same as CSV, curves for
// TensorBoard and MLflow, and lines of the log. Only the main rank has one. Nothing here throws: a
// file that cannot be written is reported, and training goes on.
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "train/options.h"
#include "train/output/csv_log.h"
#include "train/output/goodput.h"
#include "train/output/gpu_log.h"
#include "train/output/metrics_log.h"
#include "train/output/mlflow.h"
#include "train/output/progress.h"
#include "train/output/step_rates.h"
#include "train/output/tensorboard.h"
#include "train/validation.h"

namespace aifs::train {

// Says where a line of a log belongs.
struct LogPosition {
  int64_t step = 0, epoch = 0;
};

struct RunLogSetup {
  fs::path run_dir;
  LogOptions options;
  std::string config_json, program_version;  // for those who find the run in a store of many
  // On a resumed run, what files say of later steps is removed; -1: a new run.
  int64_t resume_step = -1;
  // Of the progress bar; an end of 0: unknown.
  int64_t first_step = 0, last_step = 0;
  std::chrono::steady_clock::time_point program_start = std::chrono::steady_clock::now();
  Operations operations = {};
  // Addresses of GPUs whose figures are wanted (core/nvml.h), empty: all of this host; none: none.
  std::optional<std::vector<std::string>> gpus = {};
};

class RunLog {
 public:
  explicit RunLog(const RunLogSetup& setup);

  // A line of metrics.jsonl; `line` has "step", "loss", "lr" and "step_s". After every so many
  // steps it gets "rates": how fast the last ones were, and what the run made of its time; and
  // "gpus", what GPUs do.
  void write_step(nlohmann::ordered_json line);
  // Scores of a validation, or why there are none.
  void write_validation(LogPosition position, const ValidationResult& result,
                        const data::VariableTable& variables);
  // The step of the last validation in a validation.jsonl that the run goes on with, -1 if it has
  // none; nothing if there was no such file.
  std::optional<int64_t> last_validation_step() const { return validation_.last_step(); }
  // Validations of this run that failed.
  int64_t num_failed_validations() const { return num_failed_validations_; }
  // Takes the progress bar away, so that a message can be written. What waits to be written is.
  void clear_progress();
  // Where the time goes: told of steps by write_step().
  Goodput& goodput() { return goodput_; }
  // Says how the run has ended. A log that is destroyed without it is that of a run that failed.
  void end(MlflowWriter::Status status);

 private:
  void scalar(const std::string& tag, double value, int64_t step);
  void flush();
  nlohmann::ordered_json take_rates();
  // Adds what is known of GPUs to a line, and says what is wrong with them.
  void add_gpus(nlohmann::ordered_json& line);
  // Writes the curves of a validation, from its line.
  void write_curves(const nlohmann::ordered_json& line, int64_t step);
  // Returns the mean ratios of a dataset as text: "  6h 0.812  12h 0.901".
  std::string ratios_text(const DatasetScores& dataset, bool is_only);

  Goodput goodput_;  // learns of former steps from metrics_
  StepRates rates_;
  std::optional<GpuLog> gpus_;
  JsonLines metrics_, validation_;
  std::optional<CsvLines> metrics_csv_, validation_csv_;
  std::unique_ptr<TensorBoardWriter> tensorboard_;
  std::unique_ptr<MlflowWriter> mlflow_;
  int64_t flush_every_ = 1;  // steps
  Progress progress_;
  int64_t num_failed_validations_ = 0;
  std::set<std::string> constants_named_;  // datasets whose constant variables were named
};

}  // namespace aifs::train
