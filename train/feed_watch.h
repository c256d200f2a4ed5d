// SPDX-License-Identifier: Apache-2.0
// Finds out in the first steps whether reading keeps up with training, and says what would help if
// it does not.
#pragma once

#include <cstdint>
#include <string>

namespace aifs::train {

class FeedWatch {
 public:
  // `threads` read, on a host where the process may use `cores`.
  FeedWatch(int64_t threads, int64_t cores) : threads_(threads), cores_(cores) {}

  // After each step: its seconds, those of them spent waiting for data, and the seconds that all
  // threads have spent reading since the loader began. Returns a message for people once, when
  // enough steps are seen and too much of their time went into waiting; else "".
  std::string add_step(double step_s, double wait_s, double busy_s);

 private:
  int64_t threads_, cores_;
  int64_t seen_ = 0;
  double step_s_ = 0.0, wait_s_ = 0.0, busy_s_ = 0.0, busy_before_s_ = 0.0;
};

}  // namespace aifs::train
