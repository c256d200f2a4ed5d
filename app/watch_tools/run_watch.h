// SPDX-License-Identifier: Apache-2.0
// What the files of a run folder say of a run, while it goes on or afterwards: metrics.jsonl,
// validation.jsonl, goodput.json and train.log, of which only what is new is read again. Nothing is
// written or locked, so that runs of other users and hosts can be watched.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "app/watch_tools/line_tail.h"
#include "core/file_io.h"
#include "report/goodput_file.h"

namespace aifs::app {

// The last validation, or the last try.
struct ValidationView {
  int64_t step = 0;
  std::string failure;              // why there are no scores; "": there are
  std::optional<double> loss;       // none: not finite
  std::vector<std::string> ratios;  // "6h 0.253", of several datasets "name 6h 0.253"
};

// A step of metrics.jsonl, as far as the last ones are kept.
struct StepView {
  double step_s = 0.0, data_wait_s = 0.0;
};

// A GPU of the main rank's host.
struct GpuView {
  std::string address;
  std::optional<double> use, memory_gib, memory_total_gib, power_w, temperature_c;
  std::vector<std::string> slowed_by;
};

struct RunView {
  enum class State {
    kStarting,  // there is a log, and no step yet
    kRunning,   // something was written a short while ago
    kSilent,    // nothing was written for longer than steps take: busy, or gone
    kFinished,
    kStopped,  // after a checkpoint, to be resumed
    kFailed    // the log ends with an error
  };

  std::string name;
  State state = State::kStarting;
  double quiet_s = 0.0;  // since something was written
  int64_t step = 0, epoch = 0;
  int64_t last_step = 0;       // where training ends; 0: unknown
  std::vector<double> losses;  // of all steps; NaN: not finite
  std::deque<StepView> recent;
  std::optional<double> lr, gradient_norm, tflops_per_s, mfu;
  std::optional<report::GoodputFile> goodput;
  std::vector<GpuView> gpus;  // as of the last line that has them
  int64_t rollout = 1;
  int64_t skipped = 0;  // steps
  std::optional<ValidationView> validation;
  int64_t failed_validations = 0;
  int64_t num_warnings = 0, num_errors = 0;
  std::string last_remark;          // the last of them, with its time of day
  int64_t damaged_lines = 0;        // of metrics.jsonl and validation.jsonl
  std::vector<std::string> faults;  // files that cannot be read

  // Means over the recent steps; nothing where there are none.
  std::optional<double> mean_step_s() const;
  std::optional<double> share_of_waiting() const;
  // Seconds to the last step at the present rate, without validations and checkpoints.
  std::optional<double> left_s() const;
};

class RunWatch {
 public:
  // Throws DataError, naming runs inside if there are some, if the folder is none of a run.
  explicit RunWatch(const fs::path& folder);

  // Reads what is new. `now_s`: seconds since 1970. Never throws for a file: what cannot be read is
  // in `faults`.
  const RunView& update(double now_s);

 private:
  void read_metrics();
  void read_validations();
  void read_log();
  void take_step(const std::string& line);
  void take_validation(const std::string& line);
  void take_log_line(const std::string& line);
  RunView::State state_at(double now_s) const;

  enum class LogEnd { kNone, kFinished, kStopped, kError };

  RunView view_;
  fs::path goodput_;
  LineTail metrics_, validations_, log_;
  int64_t damaged_metrics_ = 0, damaged_validations_ = 0;
  LogEnd log_end_ = LogEnd::kNone;
};

}  // namespace aifs::app
