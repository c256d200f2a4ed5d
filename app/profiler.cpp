// SPDX-License-Identifier: Apache-2.0
#include "app/profiler.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "app/device.h"
#include "core/check.h"
#include "core/log.h"

namespace aifs::app {

namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

// Template arguments say little here, and make names of a thousand characters.
std::string short_name(const std::string& name) {
  constexpr size_t kMost = 120;
  return name.substr(0, kMost);
}

}  // namespace

void start_profile() {
  const ProfilerConfig config(ProfilerState::KINETO);
  const std::set<ActivityType> activities{ActivityType::CPU, ActivityType::CUDA};
  profiler::prepareProfiler(config, activities);
  // Backward passes run on threads of their own.
  profiler::enableProfiler(
      config, activities,
      {at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE, at::RecordScope::BACKWARD_FUNCTION});
}

std::vector<KernelTime> end_profile(const std::string& trace) {
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

std::string kernel_table(const std::vector<KernelTime>& kernels) {
  constexpr size_t kShown = 24;
  double busy = 0.0;
  for (const KernelTime& kernel : kernels)
    busy += kernel.ms;
  char line[192];
  std::snprintf(line, sizeof line, "GPU busy %.2f ms", busy);
  std::string text = line;
  for (size_t i = 0; i < std::min(kShown, kernels.size()); ++i) {
    std::snprintf(line, sizeof line, "\n  %9.3f ms %5lld  %s", kernels[i].ms,
                  static_cast<long long>(kernels[i].calls), kernels[i].name.c_str());
    text += line;
  }
  return text;
}

void mark_ranges() {
  profiler::enableProfiler(ProfilerConfig(ProfilerState::NVTX), {});
}

StepProfiler::StepProfiler(int64_t first, int64_t count, std::string trace,
                           const c10::Device& device)
    : first_(first), last_(first + count - 1), trace_(std::move(trace)), device_(device) {}

StepProfiler::~StepProfiler() {
  try {
    end();
  } catch (const std::exception& error) {
    log::error("no timeline: ", error.what());
  }
}

void StepProfiler::begin(int64_t step) {
  if (running_ && step > last_) end();
  if (running_ || step < first_ || step > last_) return;
  wait_for(device_);
  start_profile();
  running_ = true;
}

void StepProfiler::end() {
  if (!running_) return;
  running_ = false;
  wait_for(device_);
  const std::vector<KernelTime> kernels = end_profile(trace_);
  log::info("timeline of steps ", first_, " to ", last_, ": '", trace_, "'",
            kernels.empty() ? "" : "\n", kernels.empty() ? "" : kernel_table(kernels));
}

}  // namespace aifs::app
