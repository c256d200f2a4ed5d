// SPDX-License-Identifier: Apache-2.0
#include "data/loader/page_lock.h"

#ifdef AIFS_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

namespace aifs::data {

PageLock::PageLock([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#ifdef AIFS_HAVE_CUDA
  if (cudaHostRegister(memory, bytes, cudaHostRegisterPortable) == cudaSuccess) {
    memory_ = memory;
  } else {
    cudaGetLastError();  // or the next check of a kernel finds it
  }
#endif
}

PageLock::~PageLock() {
#ifdef AIFS_HAVE_CUDA
  if (memory_) cudaHostUnregister(memory_);
#endif
}

}  // namespace aifs::data
