// SPDX-License-Identifier: Apache-2.0
// The way of a forward pass through the stages of a pipeline, between encoders and decoders. All
// stages walk it alike; each works where it is, and hands on what later ones need. On one stage it
// is the plain sequence of parts.
#pragma once

#include "model/base/stages.h"
#include "model/layers/part.h"

namespace aifs::model {

class StageWalk {
 public:
  // At the first stage, with rows x (copies * N, C) on `device`; other stages give nothing.
  StageWalk(const Stages& stages, const at::Tensor& x, int64_t copies, at::Device device)
      : stages_(stages), copies_(copies), device_(device), state_{x} {}

  // Whether this rank's stage is where the walk is. Elsewhere tensors are undefined.
  bool is_here() const { return stages_.is_here(stage_); }
  const at::Tensor& x() const { return state_[0]; }
  void set_x(const at::Tensor& x) { state_[0] = x; }
  // Puts a tensor by, which goes along; takes back the last of those.
  void keep(const at::Tensor& tensor) { kept_.push_back(tensor); }
  at::Tensor take();

  // On to the stage of a layer, never back, or to the last one.
  void go_to(int64_t layer) { go_to_stage(stages_.of_layer(layer)); }
  void go_to_end() { go_to_stage(stages_.last()); }
  // x through a processor with these layers, from the stage of the first to that of the last.
  void run(const Processor& processor, const LayerRange& layers, const at::Tensor& condition = {});

 private:
  void go_to_stage(int stage);

  const Stages& stages_;
  int64_t copies_;
  at::Device device_;
  int stage_ = 0;
  std::vector<at::Tensor> kept_;
  Processor::State state_;
};

}  // namespace aifs::model
