// SPDX-License-Identifier: Apache-2.0
// `aifs-train verify`: scores of forecast files against the dataset of a run.
#pragma once

#include <vector>

#include "app/run/data_parts.h"
#include "app/run/run_config.h"
#include "app/verify_tools/verify_options.h"
#include "verify/forecast_reader.h"

namespace aifs::app {

// The one of several datasets that has the cells of a forecast. Whether the only one has them is
// for verify::Truth to say. Throws DataError.
const data::Dataset& truth_of(const std::vector<DataParts>& datasets,
                              const verify::ForecastReader& forecast);

// Prints a table for each region and writes the scores; `config` says what the truth is. Dates
// without truth are counted and said. Returns the exit code. Throws ConfigError, DataError.
int run_verify_command(const VerifyCommand& command, const RunConfig& config);

}  // namespace aifs::app
