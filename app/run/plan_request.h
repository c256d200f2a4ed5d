// SPDX-License-Identifier: Apache-2.0
// What the command line says about a plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace aifs::app {

struct PlanRequest {
  int64_t ranks = 0;                // 0: those of the layout
  std::vector<std::string> layout;  // key=value over section "parallel", in order
  std::string machine;              // JSON file; empty: the one that is built in
  std::vector<int64_t> variables;   // prognostic, forcing, diagnostic, where there is no dataset
  int64_t scaling_ranks = 0;        // largest of the scaling tables; 0: none
  std::string json, svg;            // files to write; empty: none
};

}  // namespace aifs::app
