// SPDX-License-Identifier: Apache-2.0
// `aifs-train report`: run folders, scores and forecasts as one page.
#pragma once

#include <functional>

#include "app/report_tools/report_options.h"
#include "app/run/run_config.h"

namespace aifs::app {

// Writes the page. `truth_config` gives the configuration whose dataset is the truth of the maps;
// empty: there are no errors to show. Returns the exit code. Throws ConfigError, DataError.
int run_report_command(const ReportCommand& command,
                       const std::function<RunConfig()>& truth_config);

}  // namespace aifs::app
