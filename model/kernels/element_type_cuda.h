// SPDX-License-Identifier: Apache-2.0
// LibTorch's element types as the kernels of model/kernels/cuda name them.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

#include "model/kernels/cuda/rows.h"

namespace aifs::model {

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
