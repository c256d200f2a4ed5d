// SPDX-License-Identifier: Apache-2.0
#include "app/data_tools/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/log.h"
#include "core/time.h"

namespace aifs::app {

namespace {

constexpr double kRedraw_s = 0.1, kLogEvery_s = 10.0;

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

ProgressLine::ProgressLine() : is_terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  clear();
}

void ProgressLine::start(const std::string& what, int64_t total, const char* unit) {
  const std::lock_guard lock(mutex_);
  what_ = what;
  unit_ = unit;
  total_ = total;
  done_ = bytes_ = 0;
  start_ = shown_ = Clock::now();
}

std::string ProgressLine::text(double elapsed_s) const {
  const double share = total_ > 0 ? static_cast<double>(done_) / static_cast<double>(total_) : 1.0;
  char figures[96];
  std::snprintf(figures, sizeof figures, "%.0f %%, %.1f MB/s", 100.0 * share,
                1e-6 * static_cast<double>(bytes_) / std::max(elapsed_s, 1e-3));
  std::string left;
  if (done_ > 0 && done_ < total_)
    left = concat(", ", format_elapsed(elapsed_s * (1.0 - share) / share), " left");
  return concat(what_, ": ", done_, " of ", total_, " ", unit_, ", ", figures, left);
}

void ProgressLine::add(int64_t pieces, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  done_ += pieces;
  bytes_ += bytes;
  const Clock::time_point now = Clock::now();
  if (seconds_between(shown_, now) < (is_terminal_ ? kRedraw_s : kLogEvery_s)) return;
  shown_ = now;
  const std::string line = text(seconds_between(start_, now));
  if (!is_terminal_) return log::info(line);
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  visible_ = true;
}

void ProgressLine::finish() {
  const std::lock_guard lock(mutex_);
  const double elapsed_s = seconds_between(start_, Clock::now());
  clear();
  if (elapsed_s >= kLogEvery_s)
    log::info(what_, ": ", done_, " ", unit_, " in ", format_elapsed(elapsed_s));
}

void ProgressLine::clear() {
  if (!visible_) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  visible_ = false;
}

}  // namespace aifs::app
