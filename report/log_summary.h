// SPDX-License-Identifier: Apache-2.0
// What the log of a run (train.log) says of its course.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace aifs::report {

// A row of the table "time per part" (profile.parts).
struct PartTime {
  std::string name;
  double total_s = 0.0;
};

struct LogSummary {
  std::string card;       // the last run card
  int num_processes = 0;  // that went on with the run, one after the other
  double wall_s = 0.0;  // from the run card to the last line of the log, of all processes together
  std::vector<PartTime> parts;  // of the last process; empty unless it was asked for
  // Messages without their time stamps; the last ones, of kMostMessages at most.
  std::vector<std::string> warnings, errors;
  int num_warnings = 0, num_errors = 0;
};

inline constexpr size_t kMostMessages = 20;

LogSummary summarise_log(std::string_view log);

}  // namespace aifs::report
