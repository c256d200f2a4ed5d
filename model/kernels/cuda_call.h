// SPDX-License-Identifier: Apache-2.0
// What calls of the kernels in model/kernels/cuda need to know of tensors. CUDA builds only.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAStream.h>

#include <optional>

#include "model/kernels/cuda/rows.h"

namespace aifs::model {

// The current one of the tensor's device.
inline cudaStream_t stream_of(const at::Tensor& x) {
  return c10::cuda::getCurrentCUDAStream(x.device().index());
}

// Nothing for types that the kernels do not take.
inline std::optional<cuda::ElementType> element_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return cuda::ElementType::kFloat32;
    case at::kBFloat16:
      return cuda::ElementType::kBFloat16;
    case at::kHalf:
      return cuda::ElementType::kFloat16;
    default:
      return std::nullopt;
  }
}

}  // namespace aifs::model
