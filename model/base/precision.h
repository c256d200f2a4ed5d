// SPDX-License-Identifier: Apache-2.0
// Mixed precision in one place. Weights, gradients and moments keep the type of the ParameterSet;
// activations have a type of their own (ParameterSet::activation_type(), bfloat16 in bf16-mixed),
// given to features where they enter the network. From there an operation finds its type from that
// of its input and the table below, and gives its result back in the type of its input.
#pragma once

#include <ATen/core/Tensor.h>

namespace aifs::model {

enum class OpKind {
  kProduct,        // matrix products: operands in the type of the activations, fp32 sums inside
  kElementwise,    // activation functions, gates, residual sums, gathers
  kNormalisation,  // LayerNorm: statistics, weight and bias
  kSoftmax,        // attention weights and their sums
  kSegmentSum,     // sums of edge rows at nodes
  kOutput          // network output, its residual, bounding, and the loss
};

// The type in which an operation on activations of this type computes: that type, or at least fp32.
at::ScalarType compute_type(OpKind op, at::ScalarType activations);

// x in the type in which `op` computes; x itself where that is its type. Differentiable.
at::Tensor for_op(OpKind op, const at::Tensor& x);

}  // namespace aifs::model
