// SPDX-License-Identifier: Apache-2.0
// The GPU half of model/kernels/graph_attention.h: inputs of any type that the kernels know,
// without widening. In a program without CUDA nothing is supported.
#pragma once

#include "model/kernels/attention_types.h"
#include "model/kernels/segment.h"

namespace aifs::model::cuda_attention {

// True if the kernels know such inputs (device, type, widths).
bool supports(const AttentionInputs& inputs, int64_t num_heads);

AttentionSums graph_attention(const AttentionInputs& inputs, int64_t num_heads,
                              const EdgeIndexPtr& edges);

}  // namespace aifs::model::cuda_attention
