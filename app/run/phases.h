// SPDX-License-Identifier: Apache-2.0
// How long the phases of the start took: "start 0.2 s, data 0.4 s, graph 1.3 s".
#pragma once

#include <chrono>
#include <string>

namespace aifs::app {

class Phases {
 public:
  // Ends a phase that began where the last one ended, the first one with the program.
  void end(const std::string& name);
  const std::string& text() const { return text_; }
  // Since the program began, and when that was.
  static double seconds();
  static std::chrono::steady_clock::time_point program_start();

 private:
  double last_s_ = 0.0;
  std::string text_;
};

}  // namespace aifs::app
