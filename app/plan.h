// SPDX-License-Identifier: Apache-2.0
// aifs-train --dry-run: the step of a configuration on paper, for any number of ranks.
#pragma once

#include <string>
#include <vector>

#include "app/run_config.h"
#include "plan/step_plan.h"

namespace aifs::app {

struct PlanRequest {
  int64_t ranks = 0;                // 0: those of the layout
  std::vector<std::string> layout;  // key=value over section "parallel", in order
  std::string machine;              // JSON file; empty: the one that is built in
  std::vector<int64_t> variables;   // prognostic, forcing, diagnostic, where there is no dataset
  int64_t scaling_ranks = 0;        // largest of the scaling tables; 0: none
  std::string json, svg;            // files to write; empty: none
};

// What the step of a configuration depends on. Opens the dataset for its variables unless they are
// given; parallel.data = 0 becomes what is left of `request.ranks`. Throws ConfigError, DataError.
plan::StepInput step_input(const RunConfig& config, const graph::Graph& graph,
                           const PlanRequest& request);

// The graph of a configuration. Without graph.file it is built without area weights, which no plan
// needs.
graph::Graph graph_of_plan(const RunConfig& config);

// All of --dry-run: the report as text, files as requested.
std::string dry_run(const RunConfig& config, const PlanRequest& request);

}  // namespace aifs::app
