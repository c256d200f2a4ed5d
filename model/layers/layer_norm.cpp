// SPDX-License-Identifier: Apache-2.0
#include "model/layers/layer_norm.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "model/precision.h"

namespace aifs::model {

LayerNorm::LayerNorm(const ParameterScope& scope, int64_t width, const LayerNormOptions& options)
    : options_(options), width_(width) {
  if (options.condition_width > 0) {
    const LinearStart start = options.zero_init ? LinearStart::kZeros : LinearStart::kUniform;
    scale_map_ = Linear(scope / "scale", options.condition_width, width, true, start);
    bias_map_ = Linear(scope / "bias", options.condition_width, width, true, start);
    return;
  }
  if (options.of_slices) ranks_ = scope.ranks();
  weight_ = scope.add("weight", {width}, Init::ones());
  if (options.bias) bias_ = scope.add("bias", {width}, Init::zeros());
}

at::Tensor LayerNorm::forward(const at::Tensor& x, const at::Tensor& condition) const {
  if (options_.condition_width == 0) {
    return at::layer_norm(for_op(OpKind::kNormalisation, x), {width_}, ranks_.copied(weight_),
                          bias_.defined() ? ranks_.copied(bias_) : bias_, options_.eps)
        .to(x.scalar_type());
  }
  AIFS_CHECK(condition.defined() && condition.size(0) == x.size(0) &&
                 condition.size(1) == options_.condition_width,
             "a conditional norm of ", x.sizes(), " needs a condition of width ",
             options_.condition_width);
  const at::Tensor normalised =
      at::layer_norm(for_op(OpKind::kNormalisation, x), {width_}, {}, {}, options_.eps)
          .to(x.scalar_type());
  return at::addcmul(bias_map_.forward(condition), normalised, scale_map_.forward(condition) + 1.0);
}

}  // namespace aifs::model
