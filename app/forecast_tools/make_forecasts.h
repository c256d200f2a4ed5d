// SPDX-License-Identifier: Apache-2.0
// `aifs-train forecast`: forecasts from several dates into the files of a folder.
#pragma once

#include "app/forecast_tools/forecast_options.h"
#include "app/run/wiring.h"
#include "train/output/checkpoint.h"

namespace aifs::app {

// Returns the configuration of a run as its forecasts need it: all dates of the dataset, nothing of
// training.
RunConfig forecast_config(RunConfig config);

// Returns the effective configuration of a run, as JSON, without what says over how many ranks it
// is divided, and where its tables come from.
std::string without_layout(const std::string& config_json);

// Throws ConfigError for what is wrong with a command whatever the data are.
void check_command(const ForecastCommand& command, const RunConfig& config);

// Makes those forecasts that are not in the folder yet, with the weights of the checkpoint, which
// `run` has loaded; replicas share the dates. Throws ConfigError for a file of another forecast,
// DataError, Error. Returns the exit code: kInterrupted where the process was asked to stop, and
// the same command goes on from restart files. Collective.
int make_forecasts(const Run& run, const train::CheckpointInfo& checkpoint,
                   const ForecastCommand& command);

}  // namespace aifs::app
