// SPDX-License-Identifier: Apache-2.0
// What is in a run folder, for a report. The folder may be of a run that is going on, has crashed,
// or was made by somebody else: nothing in it is trusted to be whole.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/file_io.h"
#include "report/goodput_file.h"
#include "report/log_summary.h"
#include "report/metric_series.h"

namespace aifs::report {

struct RunFolder {
  std::string name;  // the path as given; for people, short_names() of all runs
  fs::path path;
  Metrics metrics;
  std::vector<nlohmann::ordered_json> validations;  // lines of validation.jsonl
  LogSummary log;
  std::optional<GoodputFile> goodput;
  // The manifest of the newest checkpoint (docs/formats/checkpoint.md), or an object with "config"
  // alone; null if there is none.
  nlohmann::ordered_json manifest;
  std::vector<std::string> remarks;  // what is missing or damaged
};

// Throws DataError if the folder is missing or is no run folder, or has no metrics yet.
RunFolder read_run_folder(const fs::path& path);

}  // namespace aifs::report
