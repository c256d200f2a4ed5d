// SPDX-License-Identifier: Apache-2.0
// The fields that a network predicts, from what its decoder gives: with a first guess added to some
// variables, others limited, in one pass over the fields each way.
#pragma once

#include <vector>

#include "model/base/parameters.h"
#include "model/layers/bounding.h"

namespace aifs::model {

// Which column of a guess is added to which output variable. `outputs` are distinct.
class GuessColumns {
 public:
  GuessColumns() = default;
  GuessColumns(ParameterSet& set, const std::vector<int64_t>& outputs,
               const std::vector<int64_t>& columns, int64_t num_outputs);
  const at::Tensor& outputs() const { return outputs_; }      // (P), i64
  const at::Tensor& columns() const { return columns_; }      // (P), i64
  const at::Tensor& by_output() const { return by_output_; }  // (V_out), i32, -1: none

 private:
  at::Tensor outputs_, columns_, by_output_;
};

// `rows` (B E N, T V) of columns (time, variable), perhaps filled up (model/base/filling.h), as
// fields (B, T, E, N, V) of type `type` and these `sizes`, with columns of `guess` (B, 1, E, N,
// ...) (undefined: none) added, and then limited. Differentiable in rows and guess.
at::Tensor predict(const at::Tensor& rows, at::IntArrayRef sizes, at::ScalarType type,
                   const at::Tensor& guess, const GuessColumns& columns,
                   const std::vector<Bounding>& boundings);

}  // namespace aifs::model
