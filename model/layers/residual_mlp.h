// SPDX-License-Identifier: Apache-2.0
// The second half of a transformer's block, the same for all of them.
#pragma once

#include "model/layers/mlp.h"

namespace aifs::model {

struct ResidualMlp {
  const LayerNorm& norm;
  const Mlp& mlp;  // both outlive the backward pass
  bool recomputed = false;
  bool ends_part =
      false;  // nothing follows in the part of the network that is recomputed around it
};

// y + mlp(norm(y)) with y = x + rows, all (rows, C); the norm may need a condition.
at::Tensor residual_mlp(const at::Tensor& x, const at::Tensor& rows, const at::Tensor& condition,
                        const ResidualMlp& layers);

}  // namespace aifs::model
