// SPDX-License-Identifier: Apache-2.0
// The page of `aifs-train report`: the files of report/page in one, with what was gathered as JSON
// in the element "report". Texts of run folders stay inside that element: scripts show them as
// text, never as HTML.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/run_folder.h"
#include "report/score_table.h"

namespace aifs::report {

struct ReportInput {
  std::string title;
  std::string made_by;  // program and version
  std::string made_at;  // date
  std::vector<RunFolder> runs;
  std::vector<ScoreTable> scores;
  nlohmann::ordered_json maps;  // of maps_json(), or null
};

// What the page holds of runs and scores; maps as they are.
nlohmann::ordered_json report_json(const ReportInput& input);
std::string report_page(const ReportInput& input);

}  // namespace aifs::report
