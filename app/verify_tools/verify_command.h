// SPDX-License-Identifier: Apache-2.0
// `aifs-train verify`: scores of forecast files against the dataset of a run.
#pragma once

#include "app/run/run_config.h"
#include "app/verify_tools/verify_options.h"

namespace aifs::app {

// Prints a table for each region and writes the scores; `config` says what the truth is. Dates
// without truth are counted and said. Returns the exit code. Throws ConfigError, DataError.
int run_verify_command(const VerifyCommand& command, const RunConfig& config);

}  // namespace aifs::app
