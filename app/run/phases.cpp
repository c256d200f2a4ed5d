// SPDX-License-Identifier: Apache-2.0
#include "app/run/phases.h"

#include "core/check.h"
#include "core/seconds_since.h"
#include "core/time.h"

namespace aifs::app {

namespace {

using Clock = std::chrono::steady_clock;

const Clock::time_point begun = Clock::now();

}  // namespace

double Phases::seconds() {
  return seconds_since(begun);
}

Clock::time_point Phases::program_start() {
  return begun;
}

void Phases::end(const std::string& name) {
  const double now_s = seconds();
  text_ += concat(text_.empty() ? "" : ", ", name, " ", format_elapsed(now_s - last_s_));
  last_s_ = now_s;
}

}  // namespace aifs::app
