// SPDX-License-Identifier: Apache-2.0
// Writes what `aifs-train graph info` finds, for people and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graph/statistics.h"
#include "graph/unconnected.h"

namespace aifs::app {

// Counts first, then degrees and lengths, attributes, and nodes without edges.
std::string summary_text(const graph::GraphStatistics& statistics,
                         const std::vector<graph::UnconnectedNodes>& unconnected);
nlohmann::ordered_json summary_json(const graph::GraphStatistics& statistics,
                                    const std::vector<graph::UnconnectedNodes>& unconnected);

// {"min", "mean", "max", "histogram": {"first", "width", "counts"}}
nlohmann::ordered_json distribution_json(const graph::Spread& spread,
                                         const graph::Histogram& histogram);

}  // namespace aifs::app
