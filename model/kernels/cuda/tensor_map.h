// SPDX-License-Identifier: Apache-2.0
// Maps of matrices of bfloat16 for the bulk copy engine (hopper.cuh).
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace aifs::model::cuda {

using Encode = decltype(&cuTensorMapEncodeTiled);

inline Encode find_encode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                       cudaEnableDefault, &result) != cudaSuccess ||
      result != cudaDriverEntryPointSuccess) {
    return nullptr;
  }
  return reinterpret_cast<Encode>(function);
}

// Null where the driver has no such thing.
inline Encode encode() {
  static const Encode function = find_encode();
  return function;
}

// Boxes of so many elements of a matrix or of what it is made of; what lies outside reads as zero.
// Strides are those of all dimensions but the first.
template <size_t kDimensions>
CUtensorMap make_map(const void* data, const int64_t (&sizes)[kDimensions],
                     const int64_t (&strides)[kDimensions - 1],
                     const cuuint32_t (&box)[kDimensions]) {
  CUtensorMap map;
  cuuint64_t all[kDimensions], bytes[kDimensions - 1];
  cuuint32_t ones[kDimensions];
  for (size_t i = 0; i < kDimensions; ++i) {
    all[i] = static_cast<cuuint64_t>(sizes[i]);
    ones[i] = 1;
    if (i > 0) bytes[i - 1] = static_cast<cuuint64_t>(strides[i - 1]) * sizeof(uint16_t);
  }
  const auto describe = [&] {
    return encode()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, kDimensions, const_cast<void*>(data),
                    all, bytes, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
                    CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  CUresult result = describe();
  if (result == CUDA_ERROR_INVALID_CONTEXT) {  // the thread's first call, and none of the runtime's
    int device = 0;
    if (cudaGetDevice(&device) == cudaSuccess && cudaSetDevice(device) == cudaSuccess)
      result = describe();
  }
  if (result != CUDA_SUCCESS) {
    throw std::runtime_error("no tensor map for rows of " + std::to_string(sizes[0]) +
                             " elements: error " + std::to_string(result));
  }
  return map;
}

}  // namespace aifs::model::cuda
