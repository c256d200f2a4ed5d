// SPDX-License-Identifier: Apache-2.0
#include "data/loader/fields_to_cells_cuda.h"

namespace aifs::data {

namespace {

constexpr int kTileCells = 64, kTileFields = 32, kThreads = 256;

// A tile goes through shared memory: rows of cells in, rows of fields out, both in whole lines. Few
// registers and blocks that end soon: other kernels compute meanwhile.
__global__ void __launch_bounds__(kThreads)
    fields_to_cells_kernel(const float* __restrict__ fields, int num_fields, int64_t num_cells,
                           float* __restrict__ cells) {
  __shared__ float tile[kTileFields][kTileCells + 1];
  const int64_t first_cell = static_cast<int64_t>(blockIdx.x) * kTileCells;
  const int first_field = blockIdx.y * kTileFields;
  for (int i = threadIdx.x; i < kTileFields * kTileCells; i += kThreads) {
    const int field = i / kTileCells, cell = i % kTileCells;
    if (first_field + field < num_fields && first_cell + cell < num_cells)
      tile[field][cell] = fields[(first_field + field) * num_cells + first_cell + cell];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kTileFields * kTileCells; i += kThreads) {
    const int cell = i / kTileFields, field = i % kTileFields;
    if (first_field + field < num_fields && first_cell + cell < num_cells)
      cells[(first_cell + cell) * num_fields + first_field + field] = tile[field][cell];
  }
}

}  // namespace

void launch_fields_to_cells(const float* fields, int64_t num_fields, int64_t num_cells,
                            float* cells, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((num_cells + kTileCells - 1) / kTileCells),
                  static_cast<unsigned>((num_fields + kTileFields - 1) / kTileFields));
  if (num_fields == 0 || num_cells == 0) return;
  fields_to_cells_kernel<<<grid, kThreads, 0, stream>>>(fields, static_cast<int>(num_fields),
                                                        num_cells, cells);
}

}  // namespace aifs::data
