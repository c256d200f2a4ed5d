// SPDX-License-Identifier: Apache-2.0
// Where the time of a run goes, since it was first started and over all restarts: the share of it
// that training steps took which still count, and what the rest was lost to. The file goodput.json
// of the run folder carries it from one process to the next; steps are those of metrics.jsonl. On
// the main rank; nothing here throws, and nothing stops a run.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/file_io.h"

namespace aifs::train {

// Seconds since the first start, by what they were spent on.
struct TimeSpent {
  double stepping_s = 0.0;  // steps that count, without waiting for data
  double data_s = 0.0;      // waiting for data in them
  double validation_s = 0.0;
  double checkpoints_s = 0.0;   // while training stood still for them
  double start_s = 0.0;         // from the start of a process to its first step
  double lost_work_s = 0.0;     // steps that had to be done again after a restart
  double between_jobs_s = 0.0;  // no process was there
  double other_s = 0.0;

  struct Item {
    const char* key;  // of the file; words are joined by "_"
    double seconds;
  };
  // In the order of the file; stepping is the first.
  std::array<Item, 8> items() const;
};

class Goodput {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr const char* kFile = "goodput.json";

  // Goes on with the file of `run_dir` if there is one; a damaged one is reported, and begun anew.
  // `program_start`: of this process.
  Goodput(const fs::path& run_dir, Clock::time_point program_start);

  // A line of metrics.jsonl of former processes: of a step that still counts, or will be done
  // again.
  void add_former_step(const nlohmann::ordered_json& line, bool counts);
  // The first step begins, that of `step` + 1. Writes the file.
  void begin(int64_t step);
  // A line of metrics.jsonl of this process. Writes the file if that is due.
  void add_step(const nlohmann::ordered_json& line);
  // What this process has spent so far on validations and on waiting for checkpoints.
  void set_pauses(double validation_s, double checkpoints_s);
  void write();

  TimeSpent spent() const;
  // Since the first start.
  double wall_s() const;
  // Time in steps that count, waiting for data left out, as a share of the wall time.
  double share() const;
  // Samples of steps that count, per second since the first start.
  double samples_per_s() const;
  int64_t num_starts() const { return num_starts_; }
  // "goodput 91.2 % of 3 h 20 min, 2 starts; 4.0 % validation, ...", without what took no time.
  std::string text() const;

 private:
  void read();
  void count(const nlohmann::ordered_json& line);
  nlohmann::ordered_json to_json() const;

  fs::path file_;
  Clock::time_point start_, written_;
  int64_t first_start_s_ = 0;  // since 1970
  int64_t num_starts_ = 1;
  TimeSpent before_;            // validation, checkpoints, start, lost work, between jobs
  double wall_before_s_ = 0.0;  // until this process began
  double gap_s_ = 0.0;          // between the file's last state and this process
  int64_t step_of_file_ = -1;   // the last one that the file knew of
  double unseen_s_ = 0.0;       // steps in the gap: a process was there
  int64_t step_ = 0;
  double stepping_s_ = 0.0, data_s_ = 0.0, samples_ = 0.0;
  double lost_work_s_ = 0.0;  // found by this process
  double start_s_ = -1.0;     // of this process; below 0: it has not begun to step
  double validation_s_ = 0.0, checkpoints_s_ = 0.0;
  bool failed_ = false;  // to write, which was reported
};

}  // namespace aifs::train
