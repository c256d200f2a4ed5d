// SPDX-License-Identifier: Apache-2.0
// What the operations of model/kernels/row_ops.h and their GPU halves take and return.
#pragma once

#include <ATen/core/Tensor.h>

namespace aifs::model {

// Says what of a GELU is kept for its backward pass: nothing, the values before it, which take
// little memory but are to be activated again, or its derivative in 8 bits (gelu_slope.h). There
// are no derivatives of types wider than 16 bits: kSlope means kPre then.
enum class Keep { kNothing, kPre, kSlope };
inline bool slope_kept(Keep keep, at::ScalarType type) {
  return keep == Keep::kSlope && c10::elementSize(type) == 2;
}

struct Activated {
  at::Tensor kept;  // undefined, like out, or bytes
  at::Tensor out;
  bool has_slope() const { return kept.defined() && kept.scalar_type() == at::kByte; }
};

struct ProductGeluGradient {
  at::Tensor gradient, activated;
};

struct NormParameters {
  at::Tensor weight, bias;  // (C) wide
  double eps = 1e-5;
};

struct NormResult {
  at::Tensor rows, sums;
  at::Tensor statistics;  // (rows, 2) mean and 1 / deviation
};

struct SumAndNorm {
  at::Tensor sum, rows, statistics;
};

// The sums that a backward pass adds to, (C) wide: gradients of weight and bias, and the sum of
// d_z over rows, the gradient of the bias before the norm.
struct NormSums {
  at::Tensor weight, bias, z;
};
struct NormGradient {
  at::Tensor d_residual;  // d_rows plus the gradient of the target's sum, if wanted
  at::Tensor d_z;
};

}  // namespace aifs::model
