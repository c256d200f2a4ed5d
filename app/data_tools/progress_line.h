// SPDX-License-Identifier: Apache-2.0
// How far work on a store is: a line that is redrawn on a terminal, else one every few seconds in
// the log.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "data/fields/work_threads.h"

namespace aifs::app {

class ProgressLine : public data::ProgressSink {
 public:
  ProgressLine();
  ~ProgressLine() override;
  void start(const std::string& what, int64_t total, const char* unit) override;
  void add(int64_t pieces, int64_t bytes) override;
  void finish() override;

 private:
  using Clock = std::chrono::steady_clock;
  std::string text(double elapsed_s) const;
  void clear();

  std::mutex mutex_;
  const bool is_terminal_;
  bool visible_ = false;
  std::string what_, unit_;
  int64_t total_ = 0, done_ = 0, bytes_ = 0;
  Clock::time_point start_, shown_;
};

}  // namespace aifs::app
