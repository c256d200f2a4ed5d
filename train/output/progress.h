// SPDX-License-Identifier: Apache-2.0
// How far training is: a bar on a terminal, plain lines in the log.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace aifs::train {

struct ProgressOptions {
  int64_t every_steps = 10;  // a log line after so many steps
  bool bar = true;           // redraw a bar on stderr if that is a terminal
  int64_t first_step = 0;    // steps done before this process
  int64_t last_step = 0;     // where training ends
};

class Progress {
 public:
  explicit Progress(const ProgressOptions& options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // After each step; `text` such as "loss 0.0423  lr 4.9e-03".
  void update(int64_t step, const std::string& text);
  // Takes the bar off the terminal until the next update.
  void clear();

 private:
  std::string rate_and_time_left(int64_t step) const;

  ProgressOptions options_;
  bool draw_bar_;
  bool bar_visible_ = false;
  std::chrono::steady_clock::time_point start_, last_drawn_;
};

}  // namespace aifs::train
