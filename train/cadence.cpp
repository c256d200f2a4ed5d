// SPDX-License-Identifier: Apache-2.0
#include "train/cadence.h"

#include "core/seconds_since.h"

namespace aifs::train {

bool Cadence::validates(const LoopState& state) const {
  return is_due(state, train_.validation.every_steps, train_.validation.every_epochs);
}

bool Cadence::saves(const LoopState& state) const {
  return is_due(state, checkpoint_.every_steps, checkpoint_.every_epochs);
}

bool Cadence::saves_by_time() const {
  return checkpoint_.every_minutes > 0 && seconds_since(saved_) >= 60.0 * checkpoint_.every_minutes;
}

bool Cadence::saves_meanwhile() const {
  return checkpoint_.every_steps > 0 || checkpoint_.every_epochs > 0 ||
         checkpoint_.every_minutes > 0;
}

bool Cadence::validates_at_end(const LoopState& state) const {
  return train_.validation.at_end && at_limit(state);
}

bool Cadence::at_step_limit(const LoopState& state) const {
  return train_.max_steps > 0 && state.step >= train_.max_steps;
}

bool Cadence::at_limit(const LoopState& state) const {
  return at_step_limit(state) || (train_.max_epochs > 0 && state.epoch >= train_.max_epochs);
}

bool Cadence::wants_to_stop() const {
  const bool out_of_time =
      train_.max_minutes > 0 && seconds_since(start_) > 60.0 * train_.max_minutes;
  return out_of_time || (should_stop_ && should_stop_());
}

}  // namespace aifs::train
