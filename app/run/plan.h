// SPDX-License-Identifier: Apache-2.0
// aifs-train --dry-run: the step of a configuration on paper, for any number of ranks.
#pragma once

#include <string>

#include "app/run/plan_request.h"
#include "app/run/run_config.h"
#include "plan/step_plan.h"

namespace aifs::app {

// Returns what a plan needs to know of a configuration. Opens the dataset for its variables unless
// they are given. Throws ConfigError, DataError.
plan::StepInput step_input(const RunConfig& config, const graph::Graph& graph,
                           const PlanRequest& request);

// The report as text, files as requested. Opens the dataset for its variables unless they are
// given; a layout without `data` has what is left of `request.ranks`. Throws ConfigError,
// DataError.
std::string dry_run(const RunConfig& config, const PlanRequest& request);

}  // namespace aifs::app
