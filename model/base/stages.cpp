// SPDX-License-Identifier: Apache-2.0
#include "model/base/stages.h"

namespace aifs::model {

Stages::Stages(parallel::StageLinks& links, parallel::Counts layers)
    : links_(&links), layers_(std::move(layers)) {
  AIFS_CHECK(static_cast<int>(layers_.size()) == links.count(), "layers of ", layers_.size(),
             " stages for ", links.count());
}

int Stages::of_layer(int64_t layer) const {
  int stage = 0;
  for (int64_t end = 0; stage < last(); ++stage) {
    end += layers_[static_cast<size_t>(stage)];
    if (layer < end) break;
  }
  return stage;
}

Slice Stages::slice(int stage, int64_t n) const {
  if (!links_->group()) return {};
  parallel::Counts counts(static_cast<size_t>(links_->count()), 0);
  counts[static_cast<size_t>(stage)] = n;
  return {links_->group(), 0, counts};
}

}  // namespace aifs::model
