// SPDX-License-Identifier: Apache-2.0
#include "bench/kernel_times.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <map>

namespace aifs::bench {

namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

// Template arguments say little here, and make names of a thousand characters.
std::string short_name(const std::string& name) {
  constexpr size_t kMost = 120;
  return name.substr(0, kMost);
}

}  // namespace

std::vector<KernelTime> kernel_times(const std::function<void()>& work, const std::string& trace) {
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  const std::set<ActivityType> activities{ActivityType::CPU, ActivityType::CUDA};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  work();
  const std::unique_ptr<profiler::ProfilerResult> result = profiler::disableProfiler();
  if (!trace.empty()) result->save(trace);
  std::map<std::string, KernelTime> by_name;
  for (const profiler::KinetoEvent& event : result->events()) {
    if (event.deviceType() != c10::DeviceType::CUDA) continue;
    KernelTime& kernel = by_name[short_name(event.name())];
    kernel.ms += static_cast<double>(event.durationNs()) * 1e-6;
    ++kernel.calls;
  }
  std::vector<KernelTime> kernels;
  for (auto& [name, kernel] : by_name) {
    kernel.name = name;
    kernels.push_back(kernel);
  }
  std::sort(kernels.begin(), kernels.end(),
            [](const KernelTime& a, const KernelTime& b) { return a.ms > b.ms; });
  return kernels;
}

}  // namespace aifs::bench
