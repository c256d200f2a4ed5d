// SPDX-License-Identifier: Apache-2.0
// The device of a test that is built twice, the second time with AIFS_GPU_TEST for a GPU.
#pragma once

#include <c10/core/Device.h>

#ifdef AIFS_GPU_TEST
#include "tests/support/gpu.h"
#endif

namespace aifs::test {

#ifdef AIFS_GPU_TEST
inline const c10::Device kDevice(c10::kCUDA, 0);
#else
inline const c10::Device kDevice(c10::kCPU);
#endif

}  // namespace aifs::test
