// SPDX-License-Identifier: Apache-2.0
#include "app/run/profiler.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>

#include "app/run/device.h"
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

namespace {

using Interval = std::pair<uint64_t, uint64_t>;  // ns

// Time that at least one of them covers.
double covered_ms(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  uint64_t covered = 0, reached = 0;
  for (const auto& [begin, end] : intervals) {
    if (end > reached) covered += end - std::max(begin, reached);
    reached = std::max(reached, end);
  }
  return static_cast<double>(covered) * 1e-6;
}

}  // namespace

GpuProfile end_profile(const std::string& trace) {
  const std::unique_ptr<profiler::ProfilerResult> result = profiler::disableProfiler();
  if (!trace.empty()) result->save(trace);
  std::map<std::string, KernelTime> by_name;
  std::vector<Interval> intervals;
  Interval span{std::numeric_limits<uint64_t>::max(), 0};
  for (const profiler::KinetoEvent& event : result->events()) {
    if (event.deviceType() != c10::DeviceType::CUDA) continue;
    KernelTime& kernel = by_name[short_name(event.name())];
    kernel.ms += static_cast<double>(event.durationNs()) * 1e-6;
    ++kernel.calls;
    const Interval& interval = intervals.emplace_back(event.startNs(), event.endNs());
    span = {std::min(span.first, interval.first), std::max(span.second, interval.second)};
  }
  GpuProfile profile;
  if (intervals.empty()) return profile;
  profile.busy_ms = covered_ms(std::move(intervals));
  profile.span_ms = static_cast<double>(span.second - span.first) * 1e-6;
  for (auto& [name, kernel] : by_name) {
    kernel.name = name;
    profile.kernels.push_back(kernel);
  }
  std::sort(profile.kernels.begin(), profile.kernels.end(),
            [](const KernelTime& a, const KernelTime& b) { return a.ms > b.ms; });
  return profile;
}

std::string kernel_table(const GpuProfile& profile) {
  constexpr size_t kShown = 24;
  char line[192];
  std::snprintf(line, sizeof line, "GPU busy %.2f of %.2f ms", profile.busy_ms, profile.span_ms);
  std::string text = line;
  for (size_t i = 0; i < std::min(kShown, profile.kernels.size()); ++i) {
    const KernelTime& kernel = profile.kernels[i];
    std::snprintf(line, sizeof line, "\n  %9.3f ms %5lld  %s", kernel.ms,
                  static_cast<long long>(kernel.calls), kernel.name.c_str());
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
  const GpuProfile profile = end_profile(trace_);
  const bool some = !profile.kernels.empty();
  log::info("timeline of steps ", first_, " to ", last_, ": '", trace_, "'", some ? "\n" : "",
            some ? kernel_table(profile) : "");
}

}  // namespace aifs::app
