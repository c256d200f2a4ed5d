// SPDX-License-Identifier: Apache-2.0
// From fields (one variable after the other) to cells (one cell after the other) on a GPU.
#pragma once

#include <ATen/core/Tensor.h>

namespace aifs::data {

// cells (N, V) = the transpose of fields (V, N), both f32 and contiguous on one device. On the
// current stream.
void fields_to_cells(const at::Tensor& fields, const at::Tensor& cells);

// Copies fields (V, N) of the host, whose rows may lie apart, to a contiguous tensor of the same
// sizes on a device. Asynchronous on the current stream where the memory is page-locked.
void copy_fields(const at::Tensor& host, const at::Tensor& device);

}  // namespace aifs::data
