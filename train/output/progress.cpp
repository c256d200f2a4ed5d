// SPDX-License-Identifier: Apache-2.0
#include "train/output/progress.h"

#include <unistd.h>

#include <cstdio>

#include "core/log.h"
#include "core/seconds_since.h"
#include "core/time.h"

namespace aifs::train {

namespace {

constexpr int kBarWidth = 24;
constexpr double kRedraw_s = 0.1;

}  // namespace

Progress::Progress(const ProgressOptions& options)
    : options_(options),
      draw_bar_(options.bar && ::isatty(STDERR_FILENO)),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  clear();
}

std::string Progress::rate_and_time_left(int64_t step) const {
  const double elapsed = seconds_since(start_);
  const auto done = static_cast<double>(step - options_.first_step);
  if (done <= 0 || elapsed <= 0) return "";
  const double rate = done / elapsed;
  char text[96];
  std::snprintf(text, sizeof text, rate >= 1 ? "%.1f steps/s" : "%.3f steps/s", rate);
  if (options_.last_step <= 0) return text;
  return concat(text, ", ", format_elapsed(static_cast<double>(options_.last_step - step) / rate),
                " left");
}

void Progress::update(int64_t step, const std::string& text) {
  const bool log_line = step % options_.every_steps == 0 || step == options_.last_step;
  const std::string place = options_.last_step > 0 ? concat("step ", step, "/", options_.last_step)
                                                   : concat("step ", step);
  if (log_line) {
    clear();
    log::info(place, "  ", text, "  ", rate_and_time_left(step));
  }
  if (!draw_bar_ || (bar_visible_ && seconds_since(last_drawn_) < kRedraw_s)) return;
  std::string bar;
  if (options_.last_step > 0) {
    const auto filled = static_cast<int>(kBarWidth * step / options_.last_step);
    bar = concat("[", std::string(static_cast<size_t>(filled), '='),
                 std::string(static_cast<size_t>(kBarWidth - filled), ' '), "] ");
  }
  std::fprintf(stderr, "\r\033[K%s%s  %s  %s", bar.c_str(), place.c_str(), text.c_str(),
               rate_and_time_left(step).c_str());
  std::fflush(stderr);
  bar_visible_ = true;
  last_drawn_ = std::chrono::steady_clock::now();
}

void Progress::clear() {
  if (!bar_visible_) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  bar_visible_ = false;
}

}  // namespace aifs::train
