// SPDX-License-Identifier: Apache-2.0
// The lines of metrics.jsonl as curves that a page can draw. Long runs are thinned: neighbours
// become one point with their least, mean and greatest value, so that no peak is lost.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/file_io.h"

namespace aifs::report {

// Points of a curve. Where nothing was thinned, the three values of a point are equal. Values that
// are no numbers (NaN, infinity) are left out of a point, and NaN where a point has no other.
struct Series {
  std::vector<double> step;  // of the last line of each point
  std::vector<double> low, mean, high;
};

struct Metrics {
  int64_t num_lines = 0;    // whole lines
  int64_t num_damaged = 0;  // lines that are no JSON object with a step: cut by a crash
  int64_t num_skipped = 0;  // steps without an update of the weights
  int64_t last_step = -1;
  double loss = 0.0;       // mean over the last 100 lines; NaN without any
  double steps_s = 0.0;    // in all steps
  double waiting_s = 0.0;  // for data, of that
  double samples = 0.0;    // in all steps
  // By the name of a number in the lines or in their "rates", and "samples_per_s",
  // "data_wait_share" and "hours" (since the first step, of steps alone), which follow from them;
  // of GPUs "gpu_use" and "gpu_power_w" (means), "gpu_memory_gib" and "gpu_temperature_c" (the
  // greatest).
  std::map<std::string, Series> series;
};

// Reads line by line; at most about `most_points` points of each curve. Throws DataError if the
// file is missing or has no line that can be read.
Metrics read_metrics(const fs::path& file, size_t most_points = 800);

}  // namespace aifs::report
