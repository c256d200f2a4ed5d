// SPDX-License-Identifier: Apache-2.0
// A whole plain MLP (linear, GELU, ..., linear, LayerNorm) with the residual sum and the sum at
// targets after it, as one operation with a backward pass written by hand: matrix products by the
// library, everything between them in kernels that read and write each row once
// (model/kernels/row_ops.h). The backward pass keeps the inputs, the values before each GELU and
// before the norm, and computes the GELUs again. Same function as Mlp; works on the CPU too.
#pragma once

#include <optional>
#include <vector>

#include "model/kernels/segment.h"

namespace aifs::model {

// What the first linear is applied to.
enum class FirstProduct {
  kPlain,  // x
  kPair,   // [a | b]
  kTwice,  // [x | x]
  kEdges   // [x_target[target] | x_source[source] | e]
};

struct FusedMlpPlan {
  FirstProduct first = FirstProduct::kPlain;
  EdgeIndexPtr edges = nullptr;                         // kEdges
  bool residual = false;                                // adds a, x or e; only with a norm
  std::optional<double> layer_norm_eps = std::nullopt;  // none: no norm
};

struct FusedMlpResult {
  at::Tensor rows;
  at::Tensor sums;  // kEdges: of rows at their targets, (num_targets, C)
};

// `rows` as listed above, in one type; `parameters`: weight and bias of each linear, then of the
// norm, in fp32 (fp64). Gradients of parameters come in their own type.
FusedMlpResult fused_mlp(const FusedMlpPlan& plan, const std::vector<at::Tensor>& rows,
                         const std::vector<at::Tensor>& parameters);

}  // namespace aifs::model
