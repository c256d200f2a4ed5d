// SPDX-License-Identifier: Apache-2.0
// What launches need to know of the current device.
#pragma once

#include <cuda_runtime_api.h>

namespace aifs::model::cuda {

struct Card {
  int major = 0, processors = 0;  // zeros where there is none
};

inline Card current_card() {
  int device = 0;
  Card card;
  if (cudaGetDevice(&device) != cudaSuccess) return card;
  cudaDeviceGetAttribute(&card.major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&card.processors, cudaDevAttrMultiProcessorCount, device);
  return card;
}

}  // namespace aifs::model::cuda
