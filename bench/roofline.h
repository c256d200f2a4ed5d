// SPDX-License-Identifier: Apache-2.0
// The least time that the kernels of some work take at the limits of the device.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/kernels.h"
#include "core/work_log.h"

namespace aifs::bench {

// Calls of one kind of kernel.
struct RooflineRow {
  std::string kind;
  int64_t calls = 0;
  double bytes = 0.0, operations = 0.0;
  double seconds = 0.0;  // of each call its bytes or its operations, whichever takes longer
};

struct Roofline {
  DeviceLimits limits;
  std::vector<RooflineRow> rows;  // longest first

  double seconds() const;
  std::string table() const;  // a line a row, and the sum
  // {copy_gb_s, product_tflop_s, ms, gb, tflop, kinds: [{kind, calls, ms, gb, tflop}]}.
  nlohmann::ordered_json to_json() const;
};

// The kernels of our own that `work` launches (core/work_log.h) and the library's products. Copies,
// fills, element-wise operations and attention of the library, and communication, are not counted.
// `work` launches its kernels one by one, from any thread; replays of CUDA graphs say nothing. Not
// from two threads at once.
std::vector<WorkOfCall> calls_of(const std::function<void()>& work);

Roofline roofline(const std::vector<WorkOfCall>& calls, const DeviceLimits& limits);

}  // namespace aifs::bench
