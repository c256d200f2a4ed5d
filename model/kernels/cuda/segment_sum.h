// SPDX-License-Identifier: Apache-2.0
// Sums of rows in groups, in the order of the group, in fp32: no atomics, the same bits every time.
#pragma once

#include "model/kernels/cuda/rows.h"

namespace aifs::model::cuda {

// out[i] = sum of the rows of group i, (groups.count, shape.width); zero for an empty group.
void segment_sum(const RowShape& shape, const void* rows, const Groups& groups, void* out,
                 cudaStream_t stream);

}  // namespace aifs::model::cuda
