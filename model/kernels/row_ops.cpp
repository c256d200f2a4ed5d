// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/row_ops.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "model/base/precision.h"
#include "model/kernels/cuda/gelu_slope.h"
#include "model/kernels/row_ops_cuda.h"
#include "model/kernels/row_products.h"

namespace aifs::model {

namespace {

at::Tensor wide(const at::Tensor& x) {
  return for_op(OpKind::kNormalisation, x);
}

// On the CPU: GELU of wide values, `like` rows.
Activated activate(const at::Tensor& pre, const at::Tensor& like, Keep keep) {
  const at::ScalarType type = like.scalar_type();
  const at::Tensor out = at::gelu(pre).to(type);
  if (keep == Keep::kNothing) return {{}, out};
  if (!slope_kept(keep, type)) return {pre.to(type), out};
  const at::Tensor slope = at::gelu_backward(at::ones_like(pre), pre);
  return {(slope * kSlopeSteps + kSlopeZero).round().to(at::kByte), out};
}

}  // namespace

bool row_ops_support(const at::Device& device, at::ScalarType type, int64_t width) {
  return device.is_cpu() || (device.is_cuda() && cuda_rows::supports(type, width));
}

bool gelu_rows_support(const at::Device& device, at::ScalarType type, int64_t width) {
  return device.is_cpu() || (device.is_cuda() && cuda_rows::gelu_supports(type, width));
}

Activated gelu_rows_(const at::Tensor& pre, Keep keep) {
  return pre.is_cuda() ? cuda_rows::gelu_rows_(pre, keep) : activate(wide(pre), pre, keep);
}

at::Tensor product_bias(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                        const at::Tensor& working_bias) {
  if (cuda_rows::product_bias_fits(x, weight)) return cuda_rows::product_bias(x, weight, bias);
  return at::addmm(working_bias, x, weight.t());
}

Activated product_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       Keep keep, const at::Tensor& addend) {
  if (cuda_rows::product_fits(x, weight, weight.size(0), weight.size(1)))
    return cuda_rows::product_gelu(x, weight, bias, keep, addend);
  at::Tensor pre = at::addmm(bias.to(x.scalar_type()), x, weight.t());
  if (addend.defined()) pre.add_(addend);
  return gelu_rows_(pre, keep);
}

Activated pair_product_gelu(const at::Tensor& a, const at::Tensor& b, const at::Tensor& weight,
                            const at::Tensor& bias, Keep keep) {
  if (cuda_rows::pair_product_fits(a, b, weight))
    return cuda_rows::product_gelu(a, weight, bias, keep, {}, b);
  const auto w = weight.chunk(2, 1);
  return product_gelu(b, w[1], bias, keep, at::mm(a, w[0].t()));
}

Activated edge_product_gelu(const at::Tensor& e, const at::Tensor& weight,
                            const at::Tensor& at_target, const at::Tensor& at_source,
                            const at::Tensor& bias, const EdgeIndex& edges, Keep keep) {
  if (cuda_rows::product_fits(e, weight, weight.size(0), weight.size(1)))
    return cuda_rows::edge_product_gelu(e, weight, at_target, at_source, bias, edges, keep);
  const at::Tensor product = at::mm(e, weight.t());
  if (e.is_cuda())
    return cuda_rows::add_ends_and_gelu_(product, at_target, at_source, bias, edges, keep);
  const at::Tensor pre = wide(product) + wide(at_target).index_select(0, edges.target) +
                         wide(at_source).index_select(0, edges.source) + bias;
  return activate(pre, e, keep);
}

ProductGeluGradient product_gelu_backward(const at::Tensor& d, const at::Tensor& weight,
                                          const Activated& x, const at::Tensor& bias_gradient) {
  if (cuda_rows::product_fits(d, weight, weight.size(1), weight.size(0)))
    return cuda_rows::product_gelu_backward(d, weight, x, bias_gradient);
  const at::Tensor gradient = at::mm(d, weight);
  return {gradient, gelu_backward_(gradient, x, bias_gradient)};
}

at::Tensor gelu_backward_(const at::Tensor& gradient, const Activated& x,
                          const at::Tensor& bias_gradient) {
  if (gradient.is_cuda()) return cuda_rows::gelu_backward_(gradient, x, bias_gradient);
  const at::Tensor g = wide(gradient);
  const at::Tensor result = x.has_slope()
                                ? g * ((x.kept.to(g.scalar_type()) - kSlopeZero) / kSlopeSteps)
                                : at::gelu_backward(g, wide(x.kept));
  gradient.copy_(result);
  bias_gradient.add_(result.sum(0));
  return x.out.defined() ? x.out : at::gelu(x.kept);
}

at::Tensor linear_backward(const at::Tensor& d, const at::Tensor& weight, const at::Tensor& x,
                           const at::Tensor& d_weight) {
  if (cuda_rows::narrow_product_fits(d, weight, x, d_weight))
    return cuda_rows::narrow_product_backward(d, weight, x, d_weight);
  add_weight_gradient(d_weight, d, x);
  return at::mm(d, weight);
}

at::Tensor product(const at::Tensor& x, const at::Tensor& b) {
  return row_products_support(x, std::max(b.size(0), b.size(1))) ? product_rows(x, b)
                                                                 : at::mm(x, b);
}

bool product_sum_fits(const at::Tensor& d, const at::Tensor& weight) {
  return cuda_rows::product_fits(d, weight, weight.size(1), weight.size(0));
}

at::Tensor product_sum(const at::Tensor& d, const at::Tensor& weight, const at::Tensor& rows,
                       const at::Tensor& at_target, const EdgeIndex* edges) {
  if (product_sum_fits(d, weight)) return cuda_rows::product_sum(d, weight, rows, at_target, edges);
  const bool own = row_products_support(d, std::max(weight.size(0), weight.size(1)));
  const at::Tensor sum = !rows.defined() ? product(d, weight)
                         : own           ? product_rows(d, weight, rows)
                                         : at::addmm(rows, d, weight);
  return at_target.defined() ? sum.add_(at_target.index_select(0, edges->target)) : sum;
}

at::Tensor pair_product_sum(const at::Tensor& a, const at::Tensor& b, const at::Tensor& weight,
                            const at::Tensor& rows) {
  if (cuda_rows::pair_sum_fits(a, b, weight))
    return cuda_rows::pair_product_sum(a, b, weight, rows);
  const auto w = weight.chunk(2, 1);
  const at::Tensor first = rows.defined() ? product_sum(a, w[0], rows) : product(a, w[0]);
  if (row_products_support(b, weight.size(1))) return product_rows(b, w[1], first);
  return first.addmm_(b, w[1]);
}

void add_weight_gradient(const at::Tensor& sum, const at::Tensor& d, const at::Tensor& x) {
  const at::ScalarType type = sum.scalar_type();
  if (x.size(1) > sum.size(1)) {
    const at::Tensor all = at::zeros({sum.size(0), x.size(1)}, sum.options());
    add_weight_gradient(all, d, x);
    sum.add_(all.narrow(1, 0, sum.size(1)));
  } else if (d.is_cuda() && d.scalar_type() != type) {
    at::Tensor out = sum;
    at::addmm_out(out, out, d.t(), x, type);
  } else if (d.scalar_type() == type && x.scalar_type() == type && d.is_contiguous() &&
             x.is_contiguous() && row_products_support(x, std::max(d.size(1), x.size(1)))) {
    add_outer_product(sum, d, x);
  } else {
    sum.addmm_(d.to(type).t(), x.to(type));
  }
}

at::Tensor sum_edge_rows(const at::Tensor& rows, const EdgeIndex& edges, bool at_targets) {
  return rows.is_cuda() ? cuda_rows::sum_edges(rows, edges, at_targets)
                        : sum_edges(rows, edges, at_targets);
}

void add_column_sums(const at::Tensor& sum, const at::Tensor& rows) {
  if (rows.is_cuda() && rows.is_contiguous() && sum.scalar_type() == at::kFloat &&
      cuda_rows::gelu_supports(rows.scalar_type(), rows.size(1))) {
    return cuda_rows::add_column_sums(sum, rows);
  }
  sum.add_(rows.sum(0, /*keepdim=*/false, sum.scalar_type()));
}

NormResult norm_rows(const at::Tensor& z, const at::Tensor& residual, const NormParameters& norm,
                     const EdgeIndex* sum_over, bool rows_wanted) {
  if (z.is_cuda()) return cuda_rows::norm_rows(z, residual, norm, sum_over, rows_wanted);
  const at::Tensor x = wide(z);
  const at::Tensor mean = x.mean(1, /*keepdim=*/true);
  const at::Tensor apart = x - mean;
  const at::Tensor inverse = (apart.square().mean(1, /*keepdim=*/true) + norm.eps).rsqrt();
  at::Tensor y = apart * inverse * norm.weight + norm.bias;
  if (residual.defined()) y = y + wide(residual);
  NormResult result{{}, {}, at::cat({mean, inverse}, 1)};
  if (rows_wanted) result.rows = y.to(z.scalar_type());
  if (sum_over) result.sums = sum_edges(y, *sum_over, /*at_targets=*/true).to(z.scalar_type());
  return result;
}

SumAndNorm norm_sum(const at::Tensor& x, const at::Tensor& addend, const NormParameters& norm) {
  if (x.is_cuda()) return cuda_rows::norm_sum(x, addend, norm);
  const at::Tensor sum = x + addend;
  const NormResult normed = norm_rows(sum, {}, norm, nullptr);
  return {sum, normed.rows, normed.statistics};
}

NormGradient norm_backward(const at::Tensor& d_rows, const at::Tensor& d_sums, const at::Tensor& z,
                           const at::Tensor& statistics, const NormParameters& norm,
                           const EdgeIndex* sum_over, const NormSums& sums, bool residual_wanted,
                           const at::Tensor& d_past) {
  AIFS_CHECK(d_rows.defined() || d_sums.defined(), "no gradient of a norm");
  AIFS_CHECK(!d_past.defined() || !sum_over, "gradients past a norm with sums over edges");
  if (z.is_cuda()) {
    return cuda_rows::norm_backward(d_rows, d_sums, z, statistics, norm, sum_over, sums,
                                    residual_wanted, d_past);
  }
  at::Tensor g;
  if (d_rows.defined()) g = wide(d_rows);
  if (d_sums.defined()) {
    const at::Tensor spread = wide(d_sums).index_select(0, sum_over->target);
    g = g.defined() ? g + spread : spread;
  }
  const at::Tensor inverse = statistics.narrow(1, 1, 1);
  const at::Tensor x = (wide(z) - statistics.narrow(1, 0, 1)) * inverse;
  const at::Tensor h = g * norm.weight;
  at::Tensor d_z = inverse * (h - h.mean(1, true) - x * (h * x).mean(1, true));
  if (d_past.defined()) d_z = d_z + wide(d_past);
  sums.weight.add_((g * x).sum(0));
  sums.bias.add_(g.sum(0));
  sums.z.add_(d_z.sum(0));
  // A copy: the caller may add to it.
  return {
      residual_wanted ? g.to(z.scalar_type(), /*non_blocking=*/false, /*copy=*/true) : at::Tensor(),
      d_z.to(z.scalar_type())};
}

}  // namespace aifs::model
