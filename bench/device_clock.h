// SPDX-License-Identifier: Apache-2.0
// Time and memory of the device a benchmark runs on.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <vector>

namespace aifs::bench {

// Marks on the current stream of a GPU, or in the time of the CPU.
class DeviceClock {
 public:
  explicit DeviceClock(const c10::Device& device);
  ~DeviceClock();
  void mark();
  // Milliseconds between successive marks; waits for the device.
  std::vector<double> intervals_ms();

 private:
  struct Marks;
  std::unique_ptr<Marks> marks_;
};

// Most memory that was in use, and that was held, since the last reset; 0 on the CPU.
struct PeakMemory {
  double allocated_gib = 0.0, reserved_gib = 0.0;
};
void reset_peak_memory(const c10::Device& device);
PeakMemory peak_memory(const c10::Device& device);
// Gives back what the allocator holds and nobody uses.
void empty_memory_cache(const c10::Device& device);

}  // namespace aifs::bench
