// SPDX-License-Identifier: Apache-2.0
// Results of `aifs-bench step` or `kernels` against earlier ones.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace aifs::bench {

// Those of `results` that take 10 % more time (25 % of a kernel or of reading) or 1 % more memory
// than what `earlier` (a JSON list of a results file, or its "results") has of the same case, card,
// mode, ranks and settings, a line for each. Results that failed, and those of which it has
// nothing, are lines, too.
std::vector<std::string> slower_than(const nlohmann::ordered_json& results,
                                     const nlohmann::ordered_json& earlier);

}  // namespace aifs::bench
