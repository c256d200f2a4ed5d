// SPDX-License-Identifier: Apache-2.0
// How long validations have gained nothing: what early stopping (train/scores/early_stop.h)
// remembers, and a checkpoint holds.
#pragma once

#include <cstdint>
#include <limits>

namespace aifs::train {

struct StopCount {
  double best = std::numeric_limits<double>::quiet_NaN();  // score; NaN: none yet
  int64_t without_gain = 0;                                // validations since
  int64_t last_step = -1;                                  // of the last validation that counts
};

}  // namespace aifs::train
