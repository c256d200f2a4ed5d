// SPDX-License-Identifier: Apache-2.0
#include "train/output/part_timer.h"

#include <ATen/record_function.h>

#include <cstdio>
#include <numeric>

#include "core/seconds_since.h"

namespace aifs::train {

namespace {

constexpr std::array<const char*, static_cast<size_t>(Part::kCount)> kNames{
    "waiting for data",   "forward and loss", "backward",  "gradients over ranks",
    "clip and optimiser", "validation",       "checkpoint"};

}  // namespace

struct PartTimer::Scope::Range {
  at::RecordFunction record{at::RecordScope::USER_SCOPE};
};

PartTimer::Scope::Scope(PartTimer& timer, Part part)
    : timer_(timer),
      part_(part),
      start_(std::chrono::steady_clock::now()),
      range_(std::make_unique<Range>()) {
  if (range_->record.isActive()) range_->record.before(kNames[static_cast<size_t>(part)]);
}

PartTimer::Scope::~Scope() {
  timer_.seconds_[static_cast<size_t>(part_)] += seconds_since(start_);
}

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
