// SPDX-License-Identifier: Apache-2.0
#include "model/layers/fused_mlp.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/check.h"
#include "model/kernels/row_ops.h"

namespace aifs::model {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Tensor cores read 16 bytes at a time: widths of narrow types are filled up with zeros to eights.
constexpr int64_t kAlignment = 8;

int64_t padding(const at::Tensor& x, int64_t width) {
  const bool narrow = x.is_cuda() && x.element_size() < 4;
  return narrow ? (kAlignment - width % kAlignment) % kAlignment : 0;
}

at::Tensor pad_columns(const at::Tensor& x, int64_t more) {
  return more == 0 ? x : at::constant_pad_nd(x, {0, more});
}

at::Tensor pad_rows(const at::Tensor& x, int64_t more) {
  return more == 0 ? x : at::constant_pad_nd(x, {0, 0, 0, more});
}

// d^T x with sums, and the result, in the type of weights.
at::Tensor weight_gradient(const at::Tensor& d, const at::Tensor& x, at::ScalarType type) {
  if (d.scalar_type() == type) return at::mm(d.t(), x);
  if (d.is_cuda()) return at::mm(d.t(), x, type);
  return at::mm(d.to(type).t(), x.to(type));
}

// The operands of one call by name.
struct Operands {
  variable_list rows, parameters;
  const FusedMlpPlan& plan;
  at::ScalarType type;

  Operands(const FusedMlpPlan& plan_, const variable_list& all, size_t num_rows)
      : rows(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(num_rows)),
        parameters(all.begin() + static_cast<std::ptrdiff_t>(num_rows), all.end()),
        plan(plan_),
        type(rows[0].scalar_type()) {}

  size_t num_linears() const { return parameters.size() / 2 - (plan.layer_norm_eps ? 1 : 0); }
  at::Tensor weight(size_t i) const { return parameters[2 * i].to(type); }
  at::Tensor bias(size_t i) const { return parameters[2 * i + 1].to(type); }
  // The first weight's parts, one per operand.
  std::vector<at::Tensor> first_weights() const {
    const int64_t parts = plan.first == FirstProduct::kEdges ? 3 : 2;
    return weight(0).chunk(parts, 1);
  }
  NormParameters norm() const {
    const size_t i = 2 * num_linears();
    return {parameters[i], parameters[i + 1], *plan.layer_norm_eps};
  }
  const at::Tensor& residual() const { return rows[plan.first == FirstProduct::kEdges ? 2 : 0]; }
  // A plain input, filled up.
  at::Tensor padded_input() const {
    return pad_columns(rows[0], padding(rows[0], rows[0].size(1)));
  }
  at::Tensor padded_weight() const {
    return pad_columns(weight(0), padding(rows[0], rows[0].size(1)));
  }
};

// The first value before a GELU, and after it.
Activated first_product(const Operands& o) {
  const at::Tensor& bias = o.parameters[1];
  switch (o.plan.first) {
    case FirstProduct::kPlain:
      return product_gelu(o.padded_input(), o.padded_weight(), bias);
    case FirstProduct::kPair: {
      const auto w = o.first_weights();
      return product_gelu(o.rows[1], w[1], bias, at::mm(o.rows[0], w[0].t()));
    }
    case FirstProduct::kTwice: {
      const auto w = o.parameters[0].chunk(2, 1);
      return product_gelu(o.rows[0], (w[0] + w[1]).to(o.type), bias);
    }
    case FirstProduct::kEdges: {
      const auto w = o.first_weights();
      return edge_product_gelu(o.rows[2], w[2], at::mm(o.rows[0], w[0].t()),
                               at::mm(o.rows[1], w[1].t()), bias, *o.plan.edges);
    }
  }
  return {};
}

// Gradients of the operands of the first linear and of its weight, from that of its result.
// `d_residual` is added to that of the operand that the residual is; it may be overwritten if it is
// `owned`.
variable_list first_backward(const Operands& o, const at::Tensor& d, const at::Tensor& d_residual,
                             bool owned) {
  const at::ScalarType weight_type = o.parameters[0].scalar_type();
  const auto with_residual = [&](const at::Tensor& w) {
    if (!d_residual.defined()) return at::mm(d, w);
    return owned ? d_residual.addmm_(d, w) : at::addmm(d_residual, d, w);
  };
  at::Tensor d_weight = at::empty_like(o.parameters[0]);
  const auto parts = [&](int64_t count) { return d_weight.chunk(count, 1); };
  switch (o.plan.first) {
    case FirstProduct::kPlain: {
      const int64_t width = o.rows[0].size(1);
      d_weight.copy_(weight_gradient(d, o.padded_input(), weight_type).narrow(1, 0, width));
      return {at::mm(d, o.padded_weight()).narrow(1, 0, width), d_weight};
    }
    case FirstProduct::kPair: {
      const auto w = o.first_weights();
      for (size_t i = 0; i < 2; ++i)
        parts(2)[i].copy_(weight_gradient(d, o.rows[i], weight_type));
      return {with_residual(w[0]), at::mm(d, w[1]), d_weight};
    }
    case FirstProduct::kTwice: {
      const auto w = o.parameters[0].chunk(2, 1);
      const at::Tensor d_half = weight_gradient(d, o.rows[0], weight_type);
      for (size_t i = 0; i < 2; ++i)
        parts(2)[i].copy_(d_half);
      return {with_residual((w[0] + w[1]).to(o.type)), d_weight};
    }
    case FirstProduct::kEdges: {
      const auto w = o.first_weights();
      variable_list result;
      for (size_t i = 0; i < 2; ++i) {
        const at::Tensor d_node = sum_edge_rows(d, *o.plan.edges, /*at_targets=*/i == 0);
        parts(3)[i].copy_(weight_gradient(d_node, o.rows[i], weight_type));
        result.push_back(at::mm(d_node, w[i]));
      }
      parts(3)[2].copy_(weight_gradient(d, o.rows[2], weight_type));
      result.push_back(with_residual(w[2]));
      result.push_back(d_weight);
      return result;
    }
  }
  return {};
}

struct PlanHolder : torch::CustomClassHolder {
  FusedMlpPlan plan;
  size_t num_rows = 0, num_operands = 0;
};

struct FusedMlp : torch::autograd::Function<FusedMlp> {
  static variable_list forward(AutogradContext* ctx, at::TensorList all, const FusedMlpPlan& plan,
                               int64_t num_rows) {
    auto holder = c10::make_intrusive<PlanHolder>();
    holder->plan = plan;
    holder->num_rows = static_cast<size_t>(num_rows);
    holder->num_operands = all.size();
    const Operands o(holder->plan, all.vec(), holder->num_rows);
    variable_list saved = all.vec();

    Activated activated = first_product(o);
    saved.push_back(activated.pre);
    const size_t last = o.num_linears() - 1;
    for (size_t i = 1; i < last; ++i) {
      activated = product_gelu(activated.out, o.weight(i), o.parameters[2 * i + 1]);
      saved.push_back(activated.pre);
    }
    at::Tensor h = std::move(activated.out);
    const int64_t out_width = o.parameters[2 * last].size(0);
    const int64_t more = plan.layer_norm_eps ? 0 : padding(h, out_width);
    const at::Tensor z =
        at::addmm(pad_columns(o.bias(last), more), h, pad_rows(o.weight(last), more).t());
    h.reset();
    variable_list result;
    if (plan.layer_norm_eps) {
      const NormResult norm =
          norm_rows(z, plan.residual ? o.residual() : at::Tensor(), o.norm(), plan.edges.get());
      saved.push_back(z);
      saved.push_back(norm.statistics);
      result = {norm.rows};
      if (plan.edges) result.push_back(norm.sums);
    } else {
      result = {z.narrow(1, 0, out_width)};
    }
    ctx->save_for_backward(std::move(saved));
    ctx->saved_data["plan"] = c10::IValue::make_capsule(std::move(holder));
    return result;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const auto holder =
        c10::static_intrusive_pointer_cast<PlanHolder>(ctx->saved_data["plan"].toCapsule());
    const FusedMlpPlan& plan = holder->plan;
    variable_list saved = ctx->get_saved_variables();
    const auto operands_end = saved.begin() + static_cast<std::ptrdiff_t>(holder->num_operands);
    const variable_list pre(operands_end, saved.end());  // of each GELU, then of the norm
    saved.erase(operands_end, saved.end());
    const Operands o(plan, saved, holder->num_rows);

    variable_list d_parameters(o.parameters.size());
    const size_t last = o.num_linears() - 1;
    at::Tensor d, d_residual;
    bool owned = false;
    if (plan.layer_norm_eps) {
      const auto contiguous = [](const at::Tensor& g) { return g.defined() ? g.contiguous() : g; };
      const at::Tensor d_sums = plan.edges ? contiguous(gradients[1]) : at::Tensor();
      const NormGradient g = norm_backward(contiguous(gradients[0]), d_sums, pre[last],
                                           pre[last + 1], o.norm(), plan.edges.get());
      d = g.d_z;
      if (plan.residual) d_residual = g.d_residual;
      owned = d_sums.defined();
      d_parameters[2 * last + 1] = g.d_z_sum;
      d_parameters[2 * last + 2] = g.d_weight;
      d_parameters[2 * last + 3] = g.d_bias;
    } else {
      const at::Tensor& g = gradients[0];
      d = pad_columns(g, padding(g, g.size(1))).contiguous();
      d_parameters[2 * last + 1] = g.sum(0, false, o.parameters[1].scalar_type());
    }
    for (size_t i = last; i > 0; --i) {
      const int64_t width = o.parameters[2 * i].size(0);
      const at::Tensor weight = pad_rows(o.weight(i), d.size(1) - width);
      const ProductGeluGradient g = product_gelu_backward(d, weight, pre[i - 1]);
      d_parameters[2 * i] = weight_gradient(d, g.activated, o.parameters[0].scalar_type());
      if (d.size(1) != width) d_parameters[2 * i] = d_parameters[2 * i].narrow(0, 0, width);
      d_parameters[2 * i - 1] = g.column_sum;
      d = g.gradient;
    }
    variable_list result = first_backward(o, d, d_residual, owned);
    d_parameters[0] = result.back();
    result.pop_back();
    result.insert(result.end(), d_parameters.begin(), d_parameters.end());
    result.resize(result.size() + 2);  // of plan and num_rows
    return result;
  }
};

}  // namespace

FusedMlpResult fused_mlp(const FusedMlpPlan& plan, const std::vector<at::Tensor>& rows,
                         const std::vector<at::Tensor>& parameters) {
  AIFS_CHECK(parameters.size() >= 4 && (!plan.residual || plan.layer_norm_eps) &&
                 (plan.edges != nullptr) == (plan.first == FirstProduct::kEdges) &&
                 (!plan.edges || plan.layer_norm_eps),
             "not a plan");
  variable_list all;
  for (const at::Tensor& x : rows)
    all.push_back(x.contiguous());
  all.insert(all.end(), parameters.begin(), parameters.end());
  const variable_list result =
      FusedMlp::apply(at::TensorList(all), plan, static_cast<int64_t>(rows.size()));
  return {result[0], plan.edges ? result[1] : at::Tensor()};
}

}  // namespace aifs::model
