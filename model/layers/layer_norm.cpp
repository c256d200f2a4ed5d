// SPDX-License-Identifier: Apache-2.0
#include "model/layers/layer_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/check.h"
#include "model/layers/mixed_products.h"
#include "model/precision.h"

namespace aifs::model {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A plain norm of 16-bit rows by the kernels of model/kernels/row_ops.h, without widened copies.
struct NarrowNorm : torch::autograd::Function<NarrowNorm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, double eps) {
    const NormResult norm = norm_rows(x, {}, {weight, bias, eps}, nullptr);
    ctx->save_for_backward({x, norm.statistics, weight, bias});
    ctx->saved_data["eps"] = eps;
    return norm.rows;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const ParameterGradients d({saved[2], saved[3]});
    const NormGradient g = norm_backward(gradients[0].contiguous(), {}, saved[0], saved[1],
                                         {saved[2], saved[3], ctx->saved_data["eps"].toDouble()},
                                         nullptr, {d[0], d[1], at::zeros_like(d[0])},
                                         /*residual_wanted=*/false);
    const variable_list& handed = d.hand_over();
    return {g.d_z, handed[0], handed[1], at::Tensor()};
  }
};

}  // namespace

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
    if (x.is_cuda() && x.element_size() == 2 && bias_.defined() && !ranks_.any() &&
        weight_.scalar_type() == at::kFloat &&
        row_ops_support(x.device(), x.scalar_type(), width_)) {
      return NarrowNorm::apply(x.reshape({-1, width_}).contiguous(), weight_, bias_, options_.eps)
          .view(x.sizes());
    }
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
