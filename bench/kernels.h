// SPDX-License-Identifier: Apache-2.0
// The kernel lab: every kernel of our own at the sizes of real networks, against LibTorch's
// operators, timed with a cold cache and held against what the card can do.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/kernel_cases.h"

namespace aifs::bench {

struct KernelBenchOptions {
  c10::Device device = c10::kCPU;
  std::string pattern = {};                                  // cases to run; part of a name
  std::vector<std::string> graphs{"o96-tri5", "n320-tri6"};  // <data grid>-tri<levels>
  std::vector<int64_t> channels{512, 1024};
  int64_t repetitions = 20;
  std::string graph_cache = {};
};

// Describes what the device does at most, measured: a copy of much more than its caches hold, in
// bytes read and written, and a large product of the type that products are made in.
struct DeviceLimits {
  double bytes_per_s = 0, flop_per_s = 0;
};
// `sustained`: at the clock that is left after a second of either.
DeviceLimits measure_limits(const c10::Device& device, bool sustained = false);

// One result a case, also given to `visit` when it is there: {case, rows, us (median), spread,
// gb_s, tflop_s, of_limit, distance, within}, or {case, error}. `of_limit` is the time of the bytes
// or of the operations at the limits, whichever is longer, over that taken; bytes are those of all
// inputs and results once, without the graph. `distance` is the largest difference from
// the reference in any result over the largest element of it.
// Throws ConfigError if no case has a name like that, or that is no regular expression.
nlohmann::ordered_json time_kernels(
    const KernelBenchOptions& options, const DeviceLimits& limits,
    const std::function<void(const nlohmann::ordered_json&)>& visit);

}  // namespace aifs::bench
