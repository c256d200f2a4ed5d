// SPDX-License-Identifier: Apache-2.0
// Columns of several tensors side by side, each copied once.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace aifs::model {

// Pieces (batch, row, column) of equal batches and rows, any types and strides, as rows
// (batch * row, all columns) of type and device `options`; `filled`: filled up behind
// (model/base/filling.h). Without autograd. On a GPU one kernel where rows are of 16 bits.
at::Tensor joined_rows(const std::vector<at::Tensor>& pieces, const at::TensorOptions& options,
                       bool filled);

}  // namespace aifs::model
