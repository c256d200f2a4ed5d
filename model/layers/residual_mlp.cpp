// SPDX-License-Identifier: Apache-2.0
#include "model/layers/residual_mlp.h"

#include <ATen/ATen.h>

#include "model/layers/steps.h"

namespace aifs::model {

at::Tensor residual_mlp(const at::Tensor& x, const at::Tensor& rows, const at::Tensor& condition,
                        const ResidualMlp& layers) {
  const bool is_end = layers.recomputed || layers.ends_part;
  const Piece piece = [norm = &layers.norm, mlp = &layers.mlp,
                       is_end](const TensorList& in) -> TensorList {
    const SumAndNormed y = norm->forward_sum(in[0], in[1], in[2]);
    return {mlp->forward_added(y.normed, y.sum, is_end && results_unread())};
  };
  if (layers.recomputed) return maybe_recomputed(true, piece, {x + rows, {}, condition})[0];
  return piece({x, rows, condition})[0];
}

}  // namespace aifs::model
