// SPDX-License-Identifier: Apache-2.0
#include "model/network/stage_walk.h"

#include <utility>

namespace aifs::model {

at::Tensor StageWalk::take() {
  const at::Tensor last = kept_.back();
  kept_.pop_back();
  return last;
}

void StageWalk::run(const Processor& processor, const LayerRange& layers,
                    const at::Tensor& condition) {
  go_to(layers.first);
  if (is_here()) state_ = processor.start(x(), copies_, condition);
  for (int stage = stage_; stage <= stages_.of_layer(layers.end - 1); ++stage) {
    go_to_stage(stage);
    if (is_here()) state_ = processor.run(state_, copies_);
  }
  state_.resize(1);
}

void StageWalk::go_to_stage(int stage) {
  for (; stage_ < stage; ++stage_) {
    if (is_here()) {
      std::vector<at::Tensor> all = kept_;
      all.insert(all.end(), state_.begin(), state_.end());
      stages_.links().to_next(all);
      kept_.assign(kept_.size(), {});
      state_.assign(1, {});
    } else if (stages_.is_here(stage_ + 1)) {
      state_ = stages_.links().from_previous(device_);
      const auto begin = state_.begin(), end = begin + static_cast<std::ptrdiff_t>(kept_.size());
      kept_.assign(begin, end);
      state_.erase(begin, end);
    }
  }
}

}  // namespace aifs::model
