// SPDX-License-Identifier: Apache-2.0
// Fields as rows of nodes.
#pragma once

#include <ATen/core/Tensor.h>

namespace aifs::model {

// Fields (B, T, E, N, V) as rows (b, e, n) of columns (time, variable), and the columns of `beside`
// (B E N, A) after them, in the type of `beside`: (B E N, T V + A), written once. Differentiable.
at::Tensor field_rows(const at::Tensor& fields, const at::Tensor& beside);

}  // namespace aifs::model
