// SPDX-License-Identifier: Apache-2.0
#include "train/loss/mse.h"

namespace aifs::train {

PointwiseError rmse_error() {
  PointwiseError error = mse_error();
  error.takes_root = true;
  return error;
}

}  // namespace aifs::train
