// SPDX-License-Identifier: Apache-2.0
// Times every operation of a communicator over a range of sizes, and what planning needs of it:
// seconds = latency + bytes / bandwidth per operation, and one link that explains them all.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "parallel/communicator.h"
#include "plan/machine.h"

namespace aifs::bench {

struct CommOptions {
  parallel::Communicator& world;
  at::Device device = at::kCPU;
  int64_t smallest = 1 << 10, largest = 1 << 30;  // bytes
};

// `bytes` are those of the whole tensor: that is reduced or broadcast, gathered from all ranks,
// scattered to them, or exchanged by one of them.
struct CommTime {
  std::string operation;
  int64_t bytes = 0;
  double seconds = 0;   // of one call, on the slowest rank
  double direct_s = 0;  // of NCCL's own call on the same buffers; 0: none
};

// Collective; the same on every rank. `visit` is told each as it is there.
std::vector<CommTime> time_operations(const CommOptions& options,
                                      const std::function<void(const CommTime&)>& visit = {});

// Bytes over the busiest link for a byte of the tensor, and messages one after another.
double bus_factor(const std::string& operation, int ranks);
double messages(const std::string& operation, int ranks);

struct CommFit {
  std::string operation;
  double latency_s = 0, bytes_per_s = 0;  // of the tensor
};
// The line with the least relative errors, for every operation that was timed at two sizes or more.
std::vector<CommFit> fit_operations(const std::vector<CommTime>& times);
// The fixed time and the time of a message that explain the latencies best, and the median of the
// bandwidths over the busiest link.
plan::LinkOptions fit_link(const std::vector<CommFit>& fits, int ranks);

// "results", "fits", and "machine" as the planner reads it; `ranks_per_host` 0: not known.
nlohmann::ordered_json to_json(const std::vector<CommTime>& times, const std::vector<CommFit>& fits,
                               const parallel::Communicator& world, int ranks_per_host);

}  // namespace aifs::bench
