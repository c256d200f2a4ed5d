// SPDX-License-Identifier: Apache-2.0
// Included by a test that needs a GPU: where there is none, the program ends as "skipped" (the exit
// code is that of SKIP_RETURN_CODE in cmake/AifsModule.cmake).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

namespace aifs::test {

inline constexpr int kSkipped = 77;

struct SkipWithoutGpu {
  SkipWithoutGpu() {
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return;
    std::puts("skipped: no GPU");
    std::fflush(stdout);
    std::_Exit(kSkipped);
  }
};
inline const SkipWithoutGpu skip_without_gpu;

}  // namespace aifs::test
