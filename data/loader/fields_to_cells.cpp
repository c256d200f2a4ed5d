// SPDX-License-Identifier: Apache-2.0
#include "data/loader/fields_to_cells.h"

#include <ATen/ATen.h>

#ifdef AIFS_HAVE_CUDA
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "data/loader/fields_to_cells_cuda.h"
#endif

namespace aifs::data {

void fields_to_cells(const at::Tensor& fields, const at::Tensor& cells) {
#ifdef AIFS_HAVE_CUDA
  if (fields.is_cuda()) {
    launch_fields_to_cells(fields.const_data_ptr<float>(), fields.size(0), fields.size(1),
                           cells.data_ptr<float>(), c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return;
  }
#endif
  cells.copy_(fields.t());
}

void copy_fields(const at::Tensor& host, const at::Tensor& device) {
#ifdef AIFS_HAVE_CUDA
  if (device.is_cuda()) {
    const auto row_bytes = static_cast<size_t>(host.size(1)) * sizeof(float);
    const size_t pitch = static_cast<size_t>(host.stride(0)) * sizeof(float);
    C10_CUDA_CHECK(cudaMemcpy2DAsync(device.data_ptr(), row_bytes, host.const_data_ptr(), pitch,
                                     row_bytes, static_cast<size_t>(host.size(0)),
                                     cudaMemcpyHostToDevice, c10::cuda::getCurrentCUDAStream()));
    return;
  }
#endif
  device.copy_(host);
}

}  // namespace aifs::data
