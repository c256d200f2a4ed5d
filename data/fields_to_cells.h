// SPDX-License-Identifier: Apache-2.0
// From fields (one variable after the other) to cells (one cell after the other) on a GPU.
#pragma once

#include <ATen/core/Tensor.h>

namespace aifs::data {

// cells (N, V) = the transpose of fields (V, N), both f32 and contiguous on one device. On the
// current stream.
void fields_to_cells(const at::Tensor& fields, const at::Tensor& cells);

}  // namespace aifs::data
