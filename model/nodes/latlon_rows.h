// SPDX-License-Identifier: Apache-2.0
// Coordinates of nodes as a tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace aifs::model {

// (N, 2), latitude and longitude, f32 on the CPU.
at::Tensor latlon_rows(const std::vector<float>& lat_rad, const std::vector<float>& lon_rad);

}  // namespace aifs::model
