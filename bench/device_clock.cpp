// SPDX-License-Identifier: Apache-2.0
#include "bench/device_clock.h"

#include <c10/core/Event.h>

#include <chrono>

#include "app/run/device.h"

#ifdef AIFS_HAVE_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

namespace aifs::bench {

using Clock = std::chrono::steady_clock;

struct DeviceClock::Marks {
  c10::Device device;
  std::vector<Clock::time_point> times;
  std::vector<c10::Event> events;
};

DeviceClock::DeviceClock(const c10::Device& device)
    : marks_(std::make_unique<Marks>(Marks{device, {}, {}})) {}

DeviceClock::~DeviceClock() = default;

void DeviceClock::mark() {
  if (marks_->device.is_cpu()) {
    marks_->times.push_back(Clock::now());
    return;
  }
  const c10::impl::VirtualGuardImpl guard(marks_->device.type());
  c10::Event event(marks_->device.type(), c10::EventFlag::BACKEND_DEFAULT);  // with time
  event.record(guard.getStream(marks_->device));
  marks_->events.push_back(std::move(event));
}

std::vector<double> DeviceClock::intervals_ms() {
  app::wait_for(marks_->device);
  std::vector<double> intervals;
  for (size_t i = 1; i < marks_->times.size(); ++i) {
    intervals.push_back(
        std::chrono::duration<double, std::milli>(marks_->times[i] - marks_->times[i - 1]).count());
  }
  for (size_t i = 1; i < marks_->events.size(); ++i)
    intervals.push_back(marks_->events[i - 1].elapsedTime(marks_->events[i]));
  return intervals;
}

void reset_peak_memory([[maybe_unused]] const c10::Device& device) {
#ifdef AIFS_HAVE_CUDA
  if (device.is_cuda()) c10::cuda::CUDACachingAllocator::resetPeakStats(device.index());
#endif
}

PeakMemory peak_memory([[maybe_unused]] const c10::Device& device) {
#ifdef AIFS_HAVE_CUDA
  if (device.is_cuda()) {
    namespace allocator = c10::cuda::CUDACachingAllocator;
    const auto stats = allocator::getDeviceStats(device.index());
    const auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto gib = [](int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); };
    return {gib(stats.allocated_bytes[all].peak), gib(stats.reserved_bytes[all].peak)};
  }
#endif
  return {};
}

void empty_memory_cache([[maybe_unused]] const c10::Device& device) {
#ifdef AIFS_HAVE_CUDA
  if (device.is_cuda()) c10::cuda::CUDACachingAllocator::emptyCache();
#endif
}

}  // namespace aifs::bench
