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

// Chunks of the encoder and of the processor. Earlier results write 0 for an encoder with a quarter
// of the decoder's, and for a processor with one.
std::pair<int64_t, int64_t> chunks_of(const Json& result) {
  const auto chunks = [&](const char* key) { return result.value(key, int64_t{0}); };
  const int64_t encoder = chunks("encoder_chunks");
  const int64_t quarter = std::max<int64_t>(1, result.value("mapper_chunks", int64_t{1}) / 4);
  return {encoder > 0 ? encoder : quarter, std::max<int64_t>(1, chunks("groups"))};
}

// True if both are of the same work on the same card.
bool same_work(const Json& a, const Json& b) {
  constexpr std::array<const char*, 13> kKeys{
      "case",  "card",       "mode",    "recompute_mappers", "recompute_processor",
      "ranks", "cuda_graph", "kernels", "mapper_chunks",     "parameters",
      "edges", "threads",    "cells"};
  // Later than the first results, with what they were then.
  const std::array<std::pair<const char*, Json>, 5> more{{{"rollout", 1},
                                                          {"accumulate_batches", 1},
                                                          {"bucket_mb", 0.0},
                                                          {"edge_ranges", 1},
                                                          {"offload", 0}}};
  return chunks_of(a) == chunks_of(b) &&
         std::all_of(more.begin(), more.end(),
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
