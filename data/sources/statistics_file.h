// SPDX-License-Identifier: Apache-2.0
// Statistics of data that hold none themselves, kept in a file so that they are computed once.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/file_io.h"
#include "data/fields/dataset.h"

namespace aifs::data {

// {"mean": [...], "stdev": ..., "minimum": ..., "maximum": ...}; null for what is not finite.
nlohmann::ordered_json to_json(const Statistics& statistics);

struct KeptStatistics {
  Statistics statistics;
  std::map<int64_t, Statistics> tendencies;  // by time difference in seconds
};

// `of` says what they are of: files with sizes and times of change, variables, period. Nothing if
// there is no file, or if it is of something else or cannot be used.
std::optional<KeptStatistics> read_statistics_file(const fs::path& path,
                                                   const nlohmann::ordered_json& of,
                                                   int64_t num_variables);
// Throws Error if it cannot be written.
void write_statistics_file(const fs::path& path, const nlohmann::ordered_json& of,
                           const KeptStatistics& kept);

}  // namespace aifs::data
