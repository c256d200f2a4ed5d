// SPDX-License-Identifier: Apache-2.0
// Shared memory beyond what a kernel may have unasked.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace aifs::model::cuda {

// So much dynamic shared memory for a kernel, asked for once; true. `name` is for the error.
template <class Kernel>
bool make_room(Kernel* kernel, int bytes, const char* name) {
  const cudaError_t room =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (room != cudaSuccess)
    throw std::runtime_error(std::string(name) + ": " + cudaGetErrorString(room));
  return true;
}

}  // namespace aifs::model::cuda
