// SPDX-License-Identifier: Apache-2.0
#include "model/layers/fused_mlp.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "core/check.h"
#include "model/kernels/mlp_rows.h"
#include "model/kernels/row_products.h"
#include "model/layers/mixed_products.h"
#include "model/nodes/node_rows.h"

namespace aifs::model {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The operands of one call by name.
struct Operands {
  variable_list rows, parameters;
  at::Tensor received = {};      // sources of other ranks, of plans with a halo
  bool arriving = false;         // they are under way
  const variable_list& weights;  // of the linears, then the last bias, in the type of the rows
  const FusedMlpPlan& plan;

  Operands(const FusedMlpPlan& plan_, const variable_list& weights_, const variable_list& all,
           size_t num_rows)
      : rows(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(num_rows)),
        parameters(all.begin() + static_cast<std::ptrdiff_t>(num_rows), all.end()),
        weights(weights_),
        plan(plan_) {
    if (plan.first == FirstProduct::kPlain)
      rows[0] = pad_columns(rows[0], padding(rows[0], rows[0].size(1)));
  }

  at::ScalarType type() const { return rows[0].scalar_type(); }
  size_t num_linears() const { return weights.size() - 1; }
  const at::Tensor& bias(size_t i) const { return parameters[2 * i + 1]; }
  const at::Tensor& last_bias() const { return weights.back(); }
  // The first weight's parts, one per operand.
  std::vector<at::Tensor> first_weights() const {
    return weights[0].chunk(plan.first == FirstProduct::kEdges ? 3 : 2, 1);
  }
  // kTwice: what multiplies x.
  at::Tensor weight_of_both() const {
    const auto w = parameters[0].chunk(2, 1);
    return (w[0] + w[1]).to(type());
  }
  NormParameters norm() const {
    const size_t i = 2 * num_linears();
    return {parameters[i], parameters[i + 1], *plan.layer_norm_eps};
  }
  const at::Tensor& residual() const { return rows[plan.first == FirstProduct::kEdges ? 2 : 0]; }
  // Returns the weight of a plain input, which is filled up.
  at::Tensor padded_weight() const {
    return pad_columns(weights[0], rows[0].size(1) - weights[0].size(1));
  }
};

// The second part of the first weight times the sources: own ones while others arrive.
at::Tensor product_at_sources(const Operands& o, const at::Tensor& weight) {
  const at::Tensor& x = o.rows[1];
  if (o.plan.sources_multiplied) return x;
  if (!o.plan.halo) return product(x, weight.t());
  const int64_t copies = o.plan.copies, width = weight.size(0);
  const int64_t own = x.size(0) / copies, more = o.received.size(0);
  const at::Tensor all = at::empty({copies * (own + more), width}, x.options());
  const auto multiply = [&](const at::Tensor& rows, int64_t begin, int64_t count) {
    if (count == 0) return;
    at::Tensor part = all.view({copies, own + more, width}).narrow(1, begin, count);
    if (copies == 1) {
      part = part.view({count, width});
      at::mm_out(part, rows, weight.t());
    } else {
      part.copy_(at::mm(rows, weight.t()).view({copies, count, width}));
    }
  };
  multiply(x, 0, own);
  if (o.arriving) o.plan.halo->wait();
  multiply(copy_after_copy(o.received, copies), own, more);
  return all;
}

// The first value before a GELU, and after it.
Activated first_product(const Operands& o, Keep keep) {
  const at::Tensor& bias = o.bias(0);
  switch (o.plan.first) {
    case FirstProduct::kPlain:
      return product_gelu(o.rows[0], o.padded_weight(), bias, keep);
    case FirstProduct::kPair:
      return pair_product_gelu(o.rows[0], o.rows[1], o.weights[0], bias, keep);
    case FirstProduct::kTwice:
      return product_gelu(o.rows[0], o.weight_of_both(), bias, keep);
    case FirstProduct::kEdges: {
      const auto w = o.first_weights();
      const at::Tensor at_target = product(o.rows[0], w[0].t());
      return edge_product_gelu(o.rows[2], w[2], at_target, product_at_sources(o, w[1]), bias,
                               *o.plan.edges, keep);
    }
  }
  return {};
}

// All but the last keep their GELUs only under kSlope.
std::vector<Activated> hidden_layers(const Operands& o, Keep keep) {
  std::vector<Activated> all{first_product(o, keep)};
  for (size_t i = 1; i + 1 < o.num_linears(); ++i) {
    all.push_back(product_gelu(all.back().out, o.weights[i], o.bias(i), keep));
    if (keep != Keep::kSlope) all[i - 1].out.reset();
  }
  return all;
}

// Gradients of the results of a norm: of its rows and their sums at targets, either of which may be
// undefined; or, `total`, of both. And what came back by target and source, undefined if nothing.
struct ResultGradients {
  at::Tensor rows, sums, total, target, source;
};

// d weight, and what comes past the product (undefined: nothing).
at::Tensor product_past(const at::Tensor& d, const at::Tensor& weight, const at::Tensor& past) {
  return past.defined() ? product_sum(d, weight, past) : product(d, weight);
}

// d weight, and what reaches the residual.
at::Tensor residual_product(const Operands& o, const at::Tensor& d, const at::Tensor& weight,
                            const ResultGradients& g) {
  if (!o.plan.residual) return at::mm(d, weight);
  if (g.total.defined()) return g.total.addmm_(d, weight);
  return product_sum(d, weight, g.rows, g.sums, o.plan.edges.get());
}

// The gradient of the first product edge by edge and, if that of the weight of the edges has been
// added up already, its sums at targets.
struct EdgeGradient {
  at::Tensor rows, at_target = {};
  at::Tensor sums(const Operands& o, bool at_targets) const {
    return at_targets && at_target.defined() ? at_target
                                             : sum_edge_rows(rows, *o.plan.edges, at_targets);
  }
  void add_to_weight(const Operands& o, const at::Tensor& d_weight) const {
    if (!at_target.defined()) add_weight_gradient(d_weight, rows, o.rows[2]);
  }
};

// Returns, for a plan with a halo, the gradients of its nodes and of the first weight from those of
// the edges.
at::Tensor halo_backward(const Operands& o, const EdgeGradient& d, const ResultGradients& g,
                         const at::Tensor& d_weight) {
  const auto w = o.first_weights(), d_w = d_weight.chunk(3, 1);
  const int64_t copies = o.plan.copies, width = d.rows.size(1);
  const int64_t own = o.rows[0].size(0) / copies, more = o.received.size(0);
  const at::Tensor d_sources = d.sums(o, /*at_targets=*/false);
  const auto some = [&](int64_t begin, int64_t count) {
    return d_sources.view({copies, own + more, width})
        .narrow(1, begin, count)
        .reshape({copies * count, width});
  };
  const at::Tensor d_received = some(own, more);
  const at::Tensor returned =
      o.plan.halo->send_back(side_by_side(at::mm(d_received, w[1]), copies));
  const at::Tensor d_target = d.sums(o, /*at_targets=*/true);
  const at::Tensor d_source = some(0, own);
  add_weight_gradient(d_w[0], d_target, o.rows[0]);
  add_weight_gradient(d_w[1], d_source, o.rows[0]);
  if (more > 0) add_weight_gradient(d_w[1], d_received, copy_after_copy(o.received, copies));
  d.add_to_weight(o, d_w[2]);
  o.plan.halo->wait();
  const at::Tensor of_nodes =
      pair_product_sum(d_target, d_source, o.weights[0].narrow(1, 0, 2 * w[0].size(1)), g.target);
  const at::Tensor by_node = side_by_side(of_nodes, copies);
  o.plan.halo->add_returned(by_node, returned);
  return copy_after_copy(by_node, copies);
}

// Gradients of the nodes at both ends of the edges, and of the first weight.
variable_list ends_backward(const Operands& o, const EdgeGradient& d, const ResultGradients& g,
                            const at::Tensor& d_weight) {
  if (o.plan.halo) return {halo_backward(o, d, g, d_weight), at::Tensor()};
  const auto w = o.first_weights(), d_w = d_weight.chunk(3, 1);
  variable_list d_node;
  for (size_t i = 0; i < 2; ++i) {
    d_node.push_back(d.sums(o, /*at_targets=*/i == 0));
    if (i == 0 || !o.plan.sources_multiplied) add_weight_gradient(d_w[i], d_node[i], o.rows[i]);
  }
  d.add_to_weight(o, d_w[2]);
  if (o.plan.one_node_set) {
    const at::Tensor both = o.weights[0].narrow(1, 0, 2 * w[0].size(1));
    return {pair_product_sum(d_node[0], d_node[1], both, g.target), at::Tensor()};
  }
  return {product_past(d_node[0], w[0], g.target),
          o.plan.sources_multiplied ? d_node[1] : product_past(d_node[1], w[1], g.source)};
}

// Gradients of the operands of the first linear, from that of its result; that of the weight is
// added to `d_weight`. `g` becomes part of that of the operand that the residual is. That of a
// plain input is `plain_width` wide, and only computed if that is not 0.
variable_list first_backward(const Operands& o, const at::Tensor& d, const ResultGradients& g,
                             const at::Tensor& d_weight, int64_t plain_width) {
  switch (o.plan.first) {
    case FirstProduct::kPlain: {
      if (plain_width == 0) {
        add_weight_gradient(d_weight, d, o.rows[0]);
        return {at::Tensor()};
      }
      return {
          without_filling(linear_backward(d, o.padded_weight(), o.rows[0], d_weight), plain_width)};
    }
    case FirstProduct::kPair: {
      const auto w = o.first_weights(), d_w = d_weight.chunk(2, 1);
      for (size_t i = 0; i < 2; ++i)
        add_weight_gradient(d_w[i], d, o.rows[i]);
      return {residual_product(o, d, w[0], g), at::mm(d, w[1])};
    }
    case FirstProduct::kTwice: {
      const at::Tensor half = at::zeros_like(d_weight.chunk(2, 1)[0]);
      add_weight_gradient(half, d, o.rows[0]);
      for (const at::Tensor& part : d_weight.chunk(2, 1))
        part.add_(half);
      return {residual_product(o, d, o.weight_of_both(), g)};
    }
    case FirstProduct::kEdges: {
      variable_list result = ends_backward(o, {d}, g, d_weight);
      result.push_back(residual_product(o, d, o.first_weights()[2], g));
      return result;
    }
  }
  return {};
}

// True if rows go through the whole MLP in blocks (model/kernels/mlp_rows.h).
bool goes_in_blocks(const Operands& o) {
  int64_t widest = 0;
  for (const at::Tensor& weight : o.weights)
    widest = std::max(widest, weight.size(0));
  return o.parameters[0].scalar_type() == o.type() && row_products_support(o.rows[0], widest);
}

RowMlp row_mlp(const Operands& o) {
  RowMlp mlp;
  switch (o.plan.first) {
    case FirstProduct::kPlain:
      mlp.inputs = {o.rows[0]};
      mlp.first = {o.weights[0]};
      break;
    case FirstProduct::kPair:
      mlp.inputs = {o.rows[0], o.rows[1]};
      mlp.first = o.first_weights();
      break;
    case FirstProduct::kTwice:
      mlp.inputs = {o.rows[0]};
      mlp.first = {o.weight_of_both()};
      break;
    case FirstProduct::kEdges:
      mlp.inputs = {o.rows[2]};
      mlp.first = {o.first_weights()[2]};
      mlp.edges = o.plan.edges.get();
      break;
  }
  mlp.weights = {o.weights.begin() + 1, o.weights.end() - 1};
  for (size_t i = 0; i < o.num_linears(); ++i)
    mlp.biases.push_back(o.bias(i));
  if (o.plan.layer_norm_eps) mlp.norm = o.norm();
  mlp.residual = o.plan.residual;
  return mlp;
}

// Results of a forward pass, and what it keeps for the backward pass.
struct Values {
  std::vector<Activated> hidden;
  at::Tensor z;  // without a norm the result
  NormResult norm;
};

Values values_in_blocks(const Operands& o, Keep keep) {
  RowMlp mlp = row_mlp(o);
  if (mlp.edges) {
    const auto w = o.first_weights();
    mlp.at_target = product(o.rows[0], w[0].t());
    mlp.at_source = product_at_sources(o, w[1]);
  }
  const RowMlpResult result =
      mlp_rows(mlp, {.rows = o.plan.rows_wanted && !o.plan.unread, .pre = keep != Keep::kNothing});
  Values values{{}, result.z, {result.rows, result.sums, result.statistics}};
  for (const at::Tensor& pre : result.pre)
    values.hidden.push_back({pre, {}});
  if (!o.plan.layer_norm_eps) {
    values.z = o.plan.unread
                   ? at::empty({o.rows[0].size(0), o.weights.back().size(0)}, o.rows[0].options())
                   : result.rows;
  }
  return values;
}

Values values_in_products(const Operands& o, Keep keep) {
  Values values{hidden_layers(o, keep), {}, {}};
  const size_t last = o.num_linears() - 1;
  const at::Tensor x = values.hidden.back().out;
  const int64_t out_width = o.weights[last].size(0);
  const int64_t more = o.plan.layer_norm_eps ? 0 : padding(x, out_width);
  values.z = o.plan.unread ? at::empty({x.size(0), out_width}, x.options())
             : more == 0   ? product_bias(x, o.weights[last], o.bias(last), o.last_bias())
                           : at::addmm(pad_columns(o.last_bias(), more), x,
                                       pad_rows(o.weights[last], more).t());
  for (Activated& layer : values.hidden) {
    if (!layer.has_slope()) layer.out.reset();
  }
  if (o.plan.layer_norm_eps) {
    values.norm = norm_rows(values.z, o.plan.residual ? o.residual() : at::Tensor(), o.norm(),
                            o.plan.edges.get(), o.plan.rows_wanted);
  }
  return values;
}

// Gradients of the rows from those of the results, `kept` of values_in_blocks(); those of
// parameters are added to `d`.
variable_list backward_in_blocks(const Operands& o, const Values& kept, const ResultGradients& g,
                                 const ParameterGradients& d, bool inputs_wanted) {
  RowMlp mlp = row_mlp(o);
  if (mlp.edges && kept.hidden.empty()) {
    const auto w = o.first_weights();
    mlp.at_target = product(o.rows[0], w[0].t());
    mlp.at_source = product_at_sources(o, w[1]);
  }
  RowMlpResult values{.z = kept.z, .statistics = kept.norm.statistics};
  for (const Activated& layer : kept.hidden)
    values.pre.push_back(layer.kept);
  RowMlpSums sums;
  const size_t num_linears = o.num_linears();
  for (size_t i = 0; i < num_linears; ++i) {
    if (i > 0) sums.weights.push_back(d[2 * i]);
    sums.biases.push_back(d[2 * i + 1]);
  }
  if (mlp.norm) {
    sums.norm_weight = d[2 * num_linears];
    sums.norm_bias = d[2 * num_linears + 1];
  }
  const FirstProduct first = o.plan.first;
  if (first == FirstProduct::kTwice) {
    sums.first = {at::zeros_like(d[0].chunk(2, 1)[0])};
  } else if (first == FirstProduct::kPlain) {
    sums.first = {d[0]};
  } else {
    sums.first = d[0].chunk(first == FirstProduct::kPair ? 2 : 3, 1);
    if (mlp.edges) sums.first = {sums.first[2]};
  }
  const RowMlpGradients back = mlp_rows_backward(mlp, values, g.rows, g.sums, sums,
                                                 inputs_wanted || first != FirstProduct::kPlain);
  if (first == FirstProduct::kTwice) {
    for (const at::Tensor& part : d[0].chunk(2, 1))
      part.add_(sums.first[0]);
  }
  if (!mlp.edges) return back.inputs.empty() ? variable_list{at::Tensor()} : back.inputs;
  variable_list result = ends_backward(o, {back.at_edges, back.at_target}, g, d[0]);
  result.push_back(back.inputs[0]);
  return result;
}

// Gradients of the rows from those of the results, product after product; those of parameters are
// added to `d_parameters`.
variable_list backward_in_products(const Operands& o, std::vector<Activated> hidden,
                                   const variable_list& of_norm, const ResultGradients& came,
                                   const ParameterGradients& d_parameters, int64_t plain_width) {
  const size_t last = o.num_linears() - 1;
  at::Tensor d;
  ResultGradients of_result = came;
  if (o.plan.layer_norm_eps) {
    const bool total_wanted = o.plan.residual && of_result.sums.defined() &&
                              !product_sum_fits(of_norm[0], o.first_weights().back());
    const NormGradient g = norm_backward(
        of_result.rows, of_result.sums, of_norm[0], of_norm[1], o.norm(), o.plan.edges.get(),
        {d_parameters[2 * last + 2], d_parameters[2 * last + 3], d_parameters[2 * last + 1]},
        total_wanted);
    d = g.d_z;
    of_result.total = g.d_residual;
  } else {
    const at::Tensor& g = came.rows;
    d = pad_columns(g, padding(g, g.size(1))).contiguous();
    const at::Tensor& d_bias = d_parameters[2 * last + 1];
    add_column_sums(d_bias, without_filling(d, d_bias.size(0)));
  }
  if (hidden.empty()) hidden = hidden_layers(o, Keep::kSlope);
  for (size_t i = last; i > 0; --i) {
    const int64_t width = o.weights[i].size(0);
    const at::Tensor weight = pad_rows(o.weights[i], d.size(1) - width);
    Activated& below = hidden[i - 1];
    const ProductGeluGradient g = product_gelu_backward(d, weight, below, d_parameters[2 * i - 1]);
    add_weight_gradient(d_parameters[2 * i], d.narrow(1, 0, width), g.activated);
    d = g.gradient;
    below = {};
  }
  return first_backward(o, d, of_result, d_parameters[0], plain_width);
}

struct CallHolder : torch::CustomClassHolder {
  FusedMlpPlan plan;
  variable_list weights;
  size_t num_rows = 0, num_operands = 0;
  int64_t plain_width = 0;  // of the first operand, before it was filled up
};

struct FusedMlp : torch::autograd::Function<FusedMlp> {
  // `differentiated`: whether a backward pass may come.
  static variable_list forward(AutogradContext* ctx, at::TensorList all, const FusedMlpPlan& plan,
                               const variable_list& weights, int64_t num_rows,
                               bool differentiated) {
    auto holder = c10::make_intrusive<CallHolder>();
    holder->plan = plan;
    holder->weights = weights;
    holder->num_rows = static_cast<size_t>(num_rows);
    holder->num_operands = all.size();
    holder->plain_width = all[0].size(1);
    ctx->set_materialize_grads(false);
    Operands o(holder->plan, holder->weights, all.vec(), holder->num_rows);
    variable_list saved = all.vec();
    std::copy(o.rows.begin(), o.rows.end(), saved.begin());
    if (plan.halo) {
      saved.push_back(o.received = plan.halo->send(side_by_side(o.rows[0], plan.copies)));
      o.arriving = true;
    }

    const Keep keep = differentiated ? plan.hidden : Keep::kNothing;
    const Values values =
        goes_in_blocks(o) ? values_in_blocks(o, keep) : values_in_products(o, keep);
    variable_list result;
    if (plan.layer_norm_eps) {
      saved.push_back(values.z);
      saved.push_back(values.norm.statistics);
      if (plan.edges) result.push_back(values.norm.sums);
      if (plan.rows_wanted) result.push_back(values.norm.rows);
      if (plan.hands_on_target) result.push_back(o.rows[0]);
      if (plan.hands_on_source) result.push_back(o.rows[1]);
    } else {
      result = {plan.filled ? values.z : values.z.narrow(1, 0, o.weights.back().size(0))};
      if (plan.adds_rows && !plan.unread) result[0].add_(o.rows[1]);
    }
    if (!differentiated) return result;
    if (plan.hidden != Keep::kNothing) {
      for (const Activated& layer : values.hidden)
        saved.insert(saved.end(), {layer.kept, layer.out});
    }
    ctx->save_for_backward(std::move(saved));
    ctx->saved_data["call"] = c10::IValue::make_capsule(std::move(holder));
    return result;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const auto holder =
        c10::static_intrusive_pointer_cast<CallHolder>(ctx->saved_data["call"].toCapsule());
    const FusedMlpPlan& plan = holder->plan;
    variable_list saved = ctx->get_saved_variables();
    const auto operands_end = saved.begin() + static_cast<std::ptrdiff_t>(holder->num_operands);
    const auto norm_begin = operands_end + (plan.halo ? 1 : 0);
    const auto norm_end = norm_begin + (plan.layer_norm_eps ? 2 : 0);
    const at::Tensor received = plan.halo ? *operands_end : at::Tensor();
    const variable_list of_norm(norm_begin, norm_end);
    std::vector<Activated> hidden;
    for (auto layer = norm_end; layer != saved.end(); layer += 2)
      hidden.push_back({layer[0], layer[1]});
    saved.erase(operands_end, saved.end());
    Operands o(plan, holder->weights, saved, holder->num_rows);
    o.received = received;
    const ParameterGradients d_parameters(o.parameters);

    const ResultGradients came = gradients_of(plan, gradients);
    if (!came.rows.defined() && !came.sums.defined())
      return with_parameters({came.target, came.source}, holder->num_rows, d_parameters);
    const bool first_wanted = ctx->needs_input_grad(0);
    variable_list result;
    if (goes_in_blocks(o)) {
      Values kept{std::move(hidden), {}, {}};
      if (plan.layer_norm_eps) {
        kept.z = of_norm[0];
        kept.norm.statistics = of_norm[1];
      }
      result = backward_in_blocks(o, kept, came, d_parameters, first_wanted);
    } else {
      result = backward_in_products(o, std::move(hidden), of_norm, came, d_parameters,
                                    first_wanted ? holder->plain_width : 0);
    }
    if (plan.adds_rows) result.push_back(came.rows);
    return with_parameters(std::move(result), holder->num_rows, d_parameters);
  }

  // Gradients of the results by name.
  static ResultGradients gradients_of(const FusedMlpPlan& plan, const variable_list& gradients) {
    auto next = gradients.begin();
    const auto take = [&](bool there) {
      if (!there) return at::Tensor();
      const at::Tensor& g = *next++;
      return g.defined() && plan.layer_norm_eps ? g.contiguous() : g;
    };
    ResultGradients g;
    g.sums = take(plan.edges != nullptr);
    g.rows = take(plan.rows_wanted);
    g.target = take(plan.hands_on_target);
    g.source = take(plan.hands_on_source);
    return g;
  }

  // Gradients of all arguments.
  static variable_list with_parameters(variable_list of_rows, size_t num_rows,
                                       const ParameterGradients& d_parameters) {
    of_rows.resize(num_rows);
    const variable_list& handed = d_parameters.hand_over();
    of_rows.insert(of_rows.end(), handed.begin(), handed.end());
    of_rows.resize(of_rows.size() + 4);  // of plan, weights, num_rows and differentiated
    return of_rows;
  }
};

struct SourceProduct : torch::autograd::Function<SourceProduct> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& working) {
    auto holder = c10::make_intrusive<CallHolder>();
    holder->weights = {working.chunk(3, 1)[1]};
    const at::Tensor result = product(x, holder->weights[0].t());
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({x, weight});
    ctx->saved_data["call"] = c10::IValue::make_capsule(std::move(holder));
    return {result};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const auto holder =
        c10::static_intrusive_pointer_cast<CallHolder>(ctx->saved_data["call"].toCapsule());
    const variable_list saved = ctx->get_saved_variables();
    const ParameterGradients d_weight({saved[1]});
    if (!gradients[0].defined()) return {at::Tensor(), d_weight.hand_over()[0], at::Tensor()};
    const at::Tensor d = gradients[0].contiguous();
    add_weight_gradient(d_weight[0].chunk(3, 1)[1], d, saved[0]);
    return {product(d, holder->weights[0]), d_weight.hand_over()[0], at::Tensor()};
  }
};

}  // namespace

at::Tensor source_product(const at::Tensor& x_source, const FusedMlpWeights& weights) {
  return SourceProduct::apply(x_source.contiguous(), weights.parameters[0], weights.working[0])[0];
}

FusedMlpResult fused_mlp(const FusedMlpPlan& plan, const std::vector<at::Tensor>& rows,
                         const FusedMlpWeights& weights) {
  AIFS_CHECK(weights.working.size() >= 3 && (!plan.residual || plan.layer_norm_eps) &&
                 (plan.edges != nullptr) == (plan.first == FirstProduct::kEdges) &&
                 (!plan.edges || plan.layer_norm_eps) && (plan.edges || plan.rows_wanted) &&
                 (plan.edges || !(plan.hands_on_target || plan.hands_on_source)) &&
                 !(plan.hands_on_source && (plan.sources_multiplied || rows[0].is_same(rows[1]))) &&
                 (!(plan.adds_rows || plan.unread || plan.filled) || !plan.layer_norm_eps) &&
                 !(plan.filled && plan.adds_rows) &&
                 (!plan.adds_rows || plan.first == FirstProduct::kPlain),
             "not a plan");
  FusedMlpPlan full = plan;
  full.one_node_set = plan.edges && rows[0].is_same(rows[1]);
  AIFS_CHECK(!plan.halo || (full.one_node_set && !plan.sources_multiplied && plan.residual),
             "a halo of other edges");
  variable_list all;
  for (const at::Tensor& x : rows)
    all.push_back(x.contiguous());
  all.insert(all.end(), weights.parameters.begin(), weights.parameters.end());
  const variable_list result =
      FusedMlp::apply(at::TensorList(all), full, weights.working, static_cast<int64_t>(rows.size()),
                      at::GradMode::is_enabled());
  const size_t handed_on = (plan.edges ? 1 : 0) + (plan.rows_wanted ? 1 : 0);
  return {plan.rows_wanted ? result[plan.edges ? 1 : 0] : at::Tensor(),
          plan.edges ? result.front() : at::Tensor(),
          plan.hands_on_target ? result[handed_on] : at::Tensor(),
          plan.hands_on_source ? result.back() : at::Tensor()};
}

}  // namespace aifs::model
