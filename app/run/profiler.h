// SPDX-License-Identifier: Apache-2.0
// What a device does, from LibTorch's profiler: timelines, and times by kernel. One profile at a
// time in a process.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

namespace aifs::app {

struct KernelTime {
  std::string name;
  double ms = 0.0;
  int64_t calls = 0;
};

// Describes what a GPU did; nothing on the CPU.
struct GpuProfile {
  std::vector<KernelTime> kernels;  // and copies, longest first
  // While at least one of them ran, and from the begin of the first to the end of the last.
  double busy_ms = 0.0, span_ms = 0.0;
};

void start_profile();
// Since then. The caller has waited for the device. With a `trace` file, writes a timeline for
// chrome://tracing or Perfetto, too.
GpuProfile end_profile(const std::string& trace);

// "GPU busy 12.30 of 12.50 ms" and a line for each of the longest.
std::string kernel_table(const GpuProfile& profile);

// From now on parts and operations are NVTX ranges, for Nsight Systems.
void mark_ranges();

// Traces some steps of a run.
class StepProfiler {
 public:
  // Steps [first, first + count), none if count is 0. `trace` names the file.
  StepProfiler(int64_t first, int64_t count, std::string trace, const c10::Device& device);
  ~StepProfiler();
  StepProfiler(const StepProfiler&) = delete;
  StepProfiler& operator=(const StepProfiler&) = delete;

  // Told as a step begins.
  void begin(int64_t step);
  // Writes the timeline, if one is under way, and logs where the time went.
  void end();

 private:
  int64_t first_, last_;
  std::string trace_;
  c10::Device device_;
  bool running_ = false;
};

}  // namespace aifs::app
