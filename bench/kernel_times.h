// SPDX-License-Identifier: Apache-2.0
// Where the time of a GPU goes, by kernel, from LibTorch's profiler.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace aifs::bench {

struct KernelTime {
  std::string name;
  double ms = 0.0;
  int64_t calls = 0;
};

// Runs `work`, which must wait for the device, and gives its kernels and copies, longest first;
// empty on the CPU. With a `trace` file, writes a timeline for chrome://tracing too.
std::vector<KernelTime> kernel_times(const std::function<void()>& work, const std::string& trace);

}  // namespace aifs::bench
