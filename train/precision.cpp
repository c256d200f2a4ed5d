// SPDX-License-Identifier: Apache-2.0
#include "train/precision.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

#include "core/check.h"

namespace aifs::train {

bool is_mixed(Precision precision) {
  return precision == Precision::kBf16Mixed || precision == Precision::kFp16Mixed;
}

at::ScalarType weight_type(Precision precision) {
  return precision == Precision::kFp64 ? at::kDouble : at::kFloat;
}

struct AutocastScope::State {
  at::DeviceType device;
  bool enabled;
  at::ScalarType type;
};

AutocastScope::AutocastScope(Precision precision, at::Device device) {
  if (!is_mixed(precision)) return;
  const at::DeviceType type = device.type();
  before_ = std::make_unique<State>(
      State{type, at::autocast::is_autocast_enabled(type), at::autocast::get_autocast_dtype(type)});
  at::autocast::increment_nesting();
  at::autocast::set_autocast_dtype(type,
                                   precision == Precision::kBf16Mixed ? at::kBFloat16 : at::kHalf);
  at::autocast::set_autocast_enabled(type, true);
}

AutocastScope::~AutocastScope() {
  if (!before_) return;
  at::autocast::set_autocast_enabled(before_->device, before_->enabled);
  at::autocast::set_autocast_dtype(before_->device, before_->type);
  // The casts of weights are kept until here, so that each is made once.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
}

NoAutocastScope::NoAutocastScope(at::Device device)
    : device_(device), before_(at::autocast::is_autocast_enabled(device.type())) {
  at::autocast::set_autocast_enabled(device.type(), false);
}

NoAutocastScope::~NoAutocastScope() {
  at::autocast::set_autocast_enabled(device_.type(), before_);
}

void LossScale::restore(double scale, int64_t good_steps) {
  AIFS_CHECK(scale > 0.0 && good_steps >= 0, "a loss scale of ", scale);
  scale_ = scale;
  good_steps_ = good_steps;
}

void LossScale::update(bool finite) {
  if (!active_) return;
  if (!finite) {
    scale_ *= kBackoff;
    good_steps_ = 0;
  } else if (++good_steps_ == kInterval) {
    scale_ *= kGrowth;
    good_steps_ = 0;
  }
}

}  // namespace aifs::train
