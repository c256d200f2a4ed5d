// SPDX-License-Identifier: Apache-2.0
// `aifs-train explain-hang`: who waited for whom in a run in which nothing moved any more.
#pragma once

#include <string>

#include "app/hang_tools/hang_records.h"

namespace aifs::app {

struct ExplainHangCommand {
  std::string run;  // run folder
};

// A line for each rank, and where it begins.
std::string hang_text(const Hang& hang);

// Prints it for the records in the run folder. Returns the exit code. Throws DataError if there are
// none.
int explain_hang(const ExplainHangCommand& command);

}  // namespace aifs::app
