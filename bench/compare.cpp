// SPDX-License-Identifier: Apache-2.0
#include "bench/compare.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/check.h"

namespace aifs::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMoreTime = 1.10, kMoreMemory = 1.01;

// Whether both are of the same work on the same card.
bool same_work(const Json& a, const Json& b) {
  constexpr std::array<const char*, 11> kKeys{
      "case",          "card",    "mode",  "recompute_mappers", "recompute_processor",
      "mapper_chunks", "kernels", "ranks", "cuda_graph",        "parameters",
      "edges"};
  // Later than the first results, with what they were then.
  const std::array<std::pair<const char*, Json>, 6> more{{{"rollout", 1},
                                                          {"overlap", false},
                                                          {"encoder_chunks", 0},
                                                          {"groups", 0},
                                                          {"edge_ranges", 1},
                                                          {"offload", 0}}};
  return std::all_of(more.begin(), more.end(),
                     [&](const auto& key) {
                       return a.value(key.first, key.second) == b.value(key.first, key.second);
                     }) &&
         std::all_of(kKeys.begin(), kKeys.end(), [&](const char* key) {
           return a.contains(key) && b.contains(key) && a[key] == b[key];
         });
}

}  // namespace

std::vector<std::string> slower_than(const Json& results, const Json& earlier) {
  if (!earlier.is_array())
    throw DataError("a file to compare with is a list of results, as --json writes it");
  std::vector<std::string> lines;
  for (const Json& result : results) {
    const auto name = result.at("case").get<std::string>();
    if (!result.contains("step_ms")) {
      lines.push_back(name + " was not timed");
      continue;
    }
    const auto found = std::find_if(earlier.begin(), earlier.end(),
                                    [&](const Json& other) { return same_work(result, other); });
    if (found == earlier.end()) {
      lines.push_back(name + ": no earlier result of the same work on the same card");
      continue;
    }
    const auto check = [&](const char* key, const char* unit, double most) {
      const double now = result[key].get<double>(), before = (*found)[key].get<double>();
      if (now <= most * before) return;
      char text[160];
      std::snprintf(text, sizeof text, "%s: %.2f %s, before %.2f (+%.1f %%)", name.c_str(), now,
                    unit, before, 100.0 * (now / before - 1.0));
      lines.emplace_back(text);
    };
    check("step_ms", "ms", kMoreTime);
    check("peak_gib", "GiB", kMoreMemory);
  }
  return lines;
}

}  // namespace aifs::bench
