// SPDX-License-Identifier: Apache-2.0
#include "model/layers/layer_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/check.h"
#include "model/base/precision.h"
#include "model/layers/mixed_products.h"

namespace aifs::model {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A plain norm of 16-bit rows by the kernels of model/kernels/row_ops.h, without widened copies:
// the sum of one or two operands, and its norm.
struct NarrowNorm : torch::autograd::Function<NarrowNorm> {
  static variable_list forward(AutogradContext* ctx, at::TensorList rows, const at::Tensor& weight,
                               const at::Tensor& bias, double eps) {
    const NormParameters parameters{weight, bias, eps};
    SumAndNorm norm;
    if (rows.size() == 2) {
      norm = norm_sum(rows[0], rows[1], parameters);
    } else {
      const NormResult alone = norm_rows(rows[0], {}, parameters, nullptr);
      norm = {rows[0], alone.rows, alone.statistics};
    }
    ctx->save_for_backward({norm.sum, norm.statistics, weight, bias});
    ctx->saved_data["eps"] = eps;
    ctx->saved_data["operands"] = static_cast<int64_t>(rows.size());
    ctx->set_materialize_grads(false);
    return {norm.sum, norm.rows};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const ParameterGradients d({saved[2], saved[3]});
    const auto contiguous = [](const at::Tensor& g) { return g.defined() ? g.contiguous() : g; };
    at::Tensor d_sum = contiguous(gradients[0]);
    if (gradients[1].defined()) {
      d_sum = norm_backward(contiguous(gradients[1]), {}, saved[0], saved[1],
                            {saved[2], saved[3], ctx->saved_data["eps"].toDouble()}, nullptr,
                            {d[0], d[1], at::zeros_like(d[0])}, /*residual_wanted=*/false, d_sum)
                  .d_z;
    }
    variable_list back(static_cast<size_t>(ctx->saved_data["operands"].toInt()), d_sum);
    const variable_list& handed = d.hand_over();
    back.insert(back.end(), handed.begin(), handed.end());
    back.emplace_back();  // of eps
    return back;
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

bool LayerNorm::is_narrow(const at::Tensor& x) const {
  return options_.condition_width == 0 && x.is_cuda() && x.element_size() == 2 && bias_.defined() &&
         !ranks_.any() && weight_.scalar_type() == at::kFloat &&
         row_ops_support(x.device(), x.scalar_type(), width_);
}

SumAndNormed LayerNorm::forward_sum(const at::Tensor& x, const at::Tensor& addend,
                                    const at::Tensor& condition) const {
  if (is_narrow(x) && x.dim() == 2) {
    variable_list rows{x.contiguous()};
    if (addend.defined()) rows.push_back(addend.contiguous());
    const variable_list both =
        NarrowNorm::apply(at::TensorList(rows), weight_, bias_, options_.eps);
    return {both[0], both[1]};
  }
  const at::Tensor sum = addend.defined() ? x + addend : x;
  return {sum, forward(sum, condition)};
}

at::Tensor LayerNorm::forward(const at::Tensor& x, const at::Tensor& condition) const {
  if (is_narrow(x)) return forward_sum(x.reshape({-1, width_}), {}).normed.view(x.sizes());
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
