// SPDX-License-Identifier: Apache-2.0
// Included by a test that needs a GPU: where there is none, the program ends as "skipped".
#pragma once

#include <cuda_runtime_api.h>

#include "tests/support/skip.h"

namespace aifs::test {

struct SkipWithoutGpu {
  SkipWithoutGpu() {
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return;
    skip("no GPU");
  }
};
inline const SkipWithoutGpu skip_without_gpu;

}  // namespace aifs::test
