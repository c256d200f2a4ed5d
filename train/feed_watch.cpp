// SPDX-License-Identifier: Apache-2.0
#include "train/feed_watch.h"

#include <cstdio>

namespace aifs::train {

namespace {

constexpr int64_t kSkipped = 3;   // the first steps wait for the first batches whatever is done
constexpr int64_t kWatched = 20;  // steps
constexpr double kMuch = 0.05;    // of the time spent waiting
constexpr double kBusy = 0.8;     // of the threads' time spent reading: more threads would help

}  // namespace

std::string FeedWatch::add_step(double step_s, double wait_s, double busy_s) {
  ++seen_;
  // Training that goes on after an error of reading has a new loader.
  const double busy_in_step_s = busy_s >= busy_before_s_ ? busy_s - busy_before_s_ : busy_s;
  busy_before_s_ = busy_s;
  if (seen_ <= kSkipped || seen_ > kSkipped + kWatched) return "";
  step_s_ += step_s;
  wait_s_ += wait_s;
  busy_s_ += busy_in_step_s;
  if (seen_ < kSkipped + kWatched || step_s_ <= 0.0) return "";
  const double share = wait_s_ / step_s_;
  if (share < kMuch) return "";
  const double busy = busy_s_ / (step_s_ * static_cast<double>(threads_));
  char text[512];
  const char* help = nullptr;
  if (busy < kBusy) {
    help =
        "they wait for files: put the data on a faster disk, or allow more read-ahead with "
        "data.memory_mib";
  } else if (threads_ < cores_ - 1) {
    help = "raise data.threads";
  } else {
    help =
        "there are no more cores: choose chunks of fewer cells if ranks share samples, a codec "
        "that decodes faster (lz4), or fewer variables";
  }
  std::snprintf(text, sizeof text,
                "training waits for data %.0f %% of the time (steps %lld to %lld of this process); "
                "%lld reader threads were busy %.0f %% of it, the process may use %lld cores: %s",
                100.0 * share, static_cast<long long>(kSkipped + 1),
                static_cast<long long>(kSkipped + kWatched), static_cast<long long>(threads_),
                100.0 * busy, static_cast<long long>(cores_), help);
  return text;
}

}  // namespace aifs::train
