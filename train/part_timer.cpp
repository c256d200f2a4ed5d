// SPDX-License-Identifier: Apache-2.0
#include "train/part_timer.h"

#include <cstdio>
#include <numeric>

namespace aifs::train {

namespace {

constexpr std::array<const char*, static_cast<size_t>(Part::kCount)> kNames{
    "waiting for data",   "forward and loss", "backward",  "gradients over ranks",
    "clip and optimiser", "validation",       "checkpoint"};

}  // namespace

std::string PartTimer::table(int64_t num_steps) const {
  const double total = std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
  std::string out = "part                   total s    ms/step   share";
  for (size_t i = 0; i < kNames.size(); ++i) {
    char line[96];
    std::snprintf(line, sizeof line, "\n%-20s %9.2f %10.2f %6.1f%%", kNames[i], seconds_[i],
                  num_steps > 0 ? 1e3 * seconds_[i] / static_cast<double>(num_steps) : 0.0,
                  total > 0 ? 100.0 * seconds_[i] / total : 0.0);
    out += line;
  }
  return out;
}

}  // namespace aifs::train
