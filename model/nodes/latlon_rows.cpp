// SPDX-License-Identifier: Apache-2.0
#include "model/nodes/latlon_rows.h"

#include <ATen/ATen.h>

namespace aifs::model {

at::Tensor latlon_rows(const std::vector<float>& lat_rad, const std::vector<float>& lon_rad) {
  return at::stack({at::tensor(at::ArrayRef<float>(lat_rad), at::kFloat),
                    at::tensor(at::ArrayRef<float>(lon_rad), at::kFloat)},
                   1);
}

}  // namespace aifs::model
