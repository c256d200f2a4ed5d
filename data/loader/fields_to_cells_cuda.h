// SPDX-License-Identifier: Apache-2.0
// The kernel behind data/loader/fields_to_cells.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace aifs::data {

// cells[n * num_fields + v] = fields[v * num_cells + n]. Asynchronous.
void launch_fields_to_cells(const float* fields, int64_t num_fields, int64_t num_cells,
                            float* cells, cudaStream_t stream);

}  // namespace aifs::data
