// SPDX-License-Identifier: Apache-2.0
// Fields as rows of nodes.
#pragma once

#include <ATen/core/Tensor.h>

namespace aifs::model {

// Fields (B, T, E, N, V) as rows (b, e, n) of columns (time, variable), and the columns of `beside`
// (B E N, A) after them, in the type of `beside`: (B E N, T V + A), written once. Differentiable.
// `filled`: with as many columns of zeros behind as products want (model/base/filling.h).
at::Tensor field_rows(const at::Tensor& fields, const at::Tensor& beside, bool filled = false);

// The columns of rows that are fields of these sizes (B, T, E, N, V), as (B, T, E, N, V): a view.
at::Tensor rows_as_fields(const at::Tensor& rows, at::IntArrayRef sizes);

}  // namespace aifs::model
