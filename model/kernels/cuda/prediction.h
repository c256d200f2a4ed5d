// SPDX-License-Identifier: Apache-2.0
// What a decoder gives as fields in fp32 with a first guess added, in one pass, and back.
#pragma once

#include "model/kernels/cuda/rows.h"

namespace aifs::model::cuda {

// Rows are those of (batch, member, node), `row_width` apart, at least `variables` wide; the guess
// (batch, member, node, column) lies as its strides say, columns one after another.
struct Prediction {
  int64_t rows = 0;  // less than 2^32
  uint32_t members = 1, nodes = 1;
  int variables = 0, row_width = 0;
  ElementType type = ElementType::kFloat32;  // of the rows
  const float* guess = nullptr;              // or none
  int64_t batch_stride = 0, member_stride = 0, node_stride = 0;
  const int32_t* guess_column = nullptr;  // (variables), -1 where there is none
};

// fields (rows, variables), fp32.
void predict(const Prediction& p, const void* rows, float* fields, cudaStream_t stream);
// The gradient of the rows from that of the fields; zeros behind the variables.
void predict_backward(const Prediction& p, const float* d_fields, void* d_rows,
                      cudaStream_t stream);

}  // namespace aifs::model::cuda
