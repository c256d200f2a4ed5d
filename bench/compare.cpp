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
constexpr double kMoreKernelTime = 1.25;  // which depends on where tensors happen to lie

// Whether both are of the same work on the same card.
bool same_work(const Json& a, const Json& b) {
  constexpr std::array<const char*, 13> kKeys{
      "case",  "card",       "mode",    "recompute_mappers", "recompute_processor",
      "ranks", "cuda_graph", "kernels", "mapper_chunks",     "parameters",
      "edges", "threads",    "cells"};
  // Later than the first results, with what they were then.
  const std::array<std::pair<const char*, Json>, 6> more{{{"rollout", 1},
                                                          {"bucket_mb", 0.0},
                                                          {"encoder_chunks", 0},
                                                          {"groups", 0},
                                                          {"edge_ranges", 1},
                                                          {"offload", 0}}};
  return std::all_of(more.begin(), more.end(),
                     [&](const auto& key) {
                       return a.value(key.first, key.second) == b.value(key.first, key.second);
                     }) &&
         std::all_of(kKeys.begin(), kKeys.end(),
                     [&](const char* key) { return a.value(key, Json()) == b.value(key, Json()); });
}

}  // namespace

std::vector<std::string> slower_than(const Json& results, const Json& earlier_file) {
  const Json& earlier = earlier_file.contains("results") ? earlier_file["results"] : earlier_file;
  if (!earlier.is_array())
    throw DataError("a file to compare with is a list of results, as --json writes it");
  std::vector<std::string> lines;
  for (const Json& result : results) {
    const auto name = result.at("case").get<std::string>();
    if (name == "bare" || name == "cold") continue;  // of the machine and its disks
    if (!result.contains("step_ms") && !result.contains("us") && !result.contains("thread_ms")) {
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
      if (!result.contains(key)) return;
      const double now = result[key].get<double>(), before = (*found)[key].get<double>();
      if (now <= most * before) return;
      char text[160];
      std::snprintf(text, sizeof text, "%s: %.2f %s, before %.2f (+%.1f %%)", name.c_str(), now,
                    unit, before, 100.0 * (now / before - 1.0));
      lines.emplace_back(text);
    };
    check("step_ms", "ms", kMoreTime);
    check("us", "us", kMoreKernelTime);
    check("thread_ms", "ms", kMoreKernelTime);
    check("peak_gib", "GiB", kMoreMemory);
  }
  return lines;
}

}  // namespace aifs::bench
