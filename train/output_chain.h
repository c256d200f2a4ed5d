// SPDX-License-Identifier: Apache-2.0
// From normalised predictions to physical ones: the inverse of the normaliser, of the maps of
// single variables, then the post-processors.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "data/transforms/normaliser.h"
#include "data/transforms/post_processor.h"
#include "data/transforms/remapper.h"

namespace aifs::train {

// Outputs of an affine chain on a device: their positions, and what is subtracted and divided by.
struct ChosenOutputs {
  at::Tensor positions, add, mul;
};

class OutputChain {
 public:
  // `columns`: the dataset columns of the outputs, in their order.
  OutputChain(const data::Normaliser& normaliser, data::Remapper remapper, data::PostProcessor post,
              std::vector<int64_t> columns);

  // True if physical values are just the normalised ones times a factor plus a constant.
  bool is_affine() const { return remapper_.empty() && post_.empty(); }

  // (..., V_out) in any type -> fp32 on the CPU.
  at::Tensor physical(const at::Tensor& normalised) const;
  // Takes what affine_physical() needs for the outputs `chosen` (by position, on the CPU) to a
  // device. Of an affine chain.
  ChosenOutputs choose(const at::Tensor& chosen, at::Device device) const;
  // (..., V_out) in any type -> (..., chosen) fp32 on the same device, the same values as
  // physical().
  static at::Tensor affine_physical(const at::Tensor& normalised, const ChosenOutputs& outputs);
  // physical() times the normaliser's factor: differences of two of them are errors in units of
  // normalised ones. In the type of the input; the input itself if the chain is affine.
  at::Tensor comparable(const at::Tensor& normalised) const;

 private:
  data::Remapper remapper_;
  data::PostProcessor post_;
  std::vector<int64_t> columns_;
  std::vector<float> add_, mul_;  // the normaliser's, of the outputs
};

}  // namespace aifs::train
