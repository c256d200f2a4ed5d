// SPDX-License-Identifier: Apache-2.0
// The scores that `aifs-train verify` wrote, read again.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/file_io.h"

namespace aifs::report {

// Figures by their names in the file ("rmse", "skill", "skill_low" ...); each list is (variables,
// lead times, regions), NaN where the file has no number.
struct ScoreTable {
  std::string name;  // the path as given; for people, short_names() of all
  std::vector<std::string> variables;
  std::vector<std::string> regions;  // "nh", and "nh, DJF" for a season
  std::vector<double> lead_times_h;  // ascending
  std::map<std::string, std::vector<double>> figures;
  int64_t num_damaged = 0;  // lines that are no scores

  size_t place(size_t variable, size_t lead_time, size_t region) const {
    return (variable * lead_times_h.size() + lead_time) * regions.size() + region;
  }
};

// Reads scores.jsonl of a folder, or scores.csv where there is none, or a file of either kind.
// Throws DataError if there are no scores.
ScoreTable read_scores(const fs::path& folder_or_file);

}  // namespace aifs::report
