// SPDX-License-Identifier: Apache-2.0
// The stages of a pipeline: ranks that have a range of the processors' layers each. Encoders are
// the first stage's, decoders, residuals and boundings the last one's. Every tensor is known on all
// stages, and kept on the one that uses it.
#pragma once

#include "model/base/tensor_ranks.h"
#include "parallel/stage_links.h"

namespace aifs::model {

// Layers of one processor among those of all, in the order in which a forward pass meets them.
struct LayerRange {
  int64_t first = 0, end = 0;
};

class Stages {
 public:
  // One, of everything.
  Stages() : alone_(std::make_shared<parallel::StageLinks>()), links_(alone_.get()) {}
  // `links` outlive the stages; `layers` are those of each.
  Stages(parallel::StageLinks& links, parallel::Counts layers);

  // Returns what stages give each other.
  parallel::StageLinks& links() const { return *links_; }
  int last() const { return links_->count() - 1; }
  int of_layer(int64_t layer) const;
  bool is_here(int stage) const { return links_->stage() == stage; }
  // All n rows of a tensor for `stage`, none for the others.
  Slice slice(int stage, int64_t n) const;

 private:
  std::shared_ptr<parallel::StageLinks> alone_;
  parallel::StageLinks* links_;
  parallel::Counts layers_;
};

}  // namespace aifs::model
