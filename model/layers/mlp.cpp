// SPDX-License-Identifier: Apache-2.0
#include "model/layers/mlp.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "model/base/filling.h"
#include "model/base/precision.h"
#include "model/kernels/row_ops.h"
#include "model/kernels/row_products.h"

namespace aifs::model {

namespace {

Activation activation_of(const MlpOptions& options) {
  switch (options.implementation) {
    case MlpImplementation::kMlp:
      return options.activation;
    case MlpImplementation::kGlu:
      return Activation::kSigmoid;
    case MlpImplementation::kSwiglu:
      return Activation::kSilu;
    case MlpImplementation::kGeglu:
      return Activation::kGelu;
    case MlpImplementation::kReglu:
      return Activation::kRelu;
  }
  return options.activation;
}

}  // namespace

int64_t hidden_width(int64_t channels, double ratio) {
  return static_cast<int64_t>(std::floor(static_cast<double>(channels) * ratio + 0.5));
}

Mlp::Mlp(const ParameterScope& scope, const MlpOptions& options)
    : implementation_(options.implementation),
      activation_(activation_of(options)),
      kernels_(options.kernels),
      ranks_(scope.ranks()) {
  if (kernels_ == KernelChoice::kFused && ranks_.any()) {
    throw ConfigError("model.kernels", "there are no fused kernels for MLPs that are sliced",
                      "use \"auto\" or \"reference\", or parallel.tensor = 1");
  }
  if (kernels_ == KernelChoice::kFused && !could_be_fused()) {
    throw ConfigError(
        "model.kernels",
        concat("there are no fused kernels for mlp_implementation \"", enum_name(implementation_),
               "\" with activation \"", enum_name(activation_), "\""),
        "use \"auto\" or \"reference\"");
  }
  const ParameterScope layers = scope / "mlp";
  const bool gated = options.implementation != MlpImplementation::kMlp;
  const int64_t num_hidden = options.extra_layers + 1;
  for (int64_t i = 0; i < num_hidden; ++i) {
    const auto linear = [&](const ParameterScope& place) {
      return Linear(place, i == 0 ? options.in : options.hidden, options.hidden, true,
                    LinearStart::kUniform, {.in = i > 0, .out = true});
    };
    HiddenLayer layer;
    if (gated) {
      layer.gate = linear(layers / i / "gate_proj");
      layer.linear = linear(layers / i / "value_proj");
    } else {
      layer.linear = linear(layers / (2 * i));  // activations have numbers too
    }
    hidden_.push_back(std::move(layer));
  }
  last_ = Linear(layers / (gated ? num_hidden : 2 * num_hidden), options.hidden, options.out, true,
                 LinearStart::kUniform, {.in = true});
  if (options.layer_norm) {
    layer_norm_ = LayerNorm(scope / "layer_norm", options.out, {.eps = options.layer_norm_eps});
  }
}

template <class FirstLinear>
at::Tensor Mlp::run(FirstLinear&& first_linear) const {
  at::Tensor h;
  for (size_t i = 0; i < hidden_.size(); ++i) {
    const HiddenLayer& layer = hidden_[i];
    const auto apply = [&](const Linear& linear) {
      return i == 0 ? first_linear(linear) : linear.forward(h);
    };
    const at::Tensor activated =
        activate(apply(layer.gate ? *layer.gate : layer.linear), activation_);
    h = layer.gate ? activated * apply(layer.linear) : activated;
  }
  h = last_.forward(h);
  return layer_norm_ ? layer_norm_->forward(h) : h;
}

bool Mlp::could_be_fused() const {
  return implementation_ == MlpImplementation::kMlp && activation_ == Activation::kGelu;
}

bool Mlp::is_fused(const at::Tensor& rows) const {
  if (kernels_ == KernelChoice::kReference || ranks_.any() || !could_be_fused()) return false;
  const int64_t hidden = last_.weight.size(1), out = last_.weight.size(0);
  const at::ScalarType type = rows.scalar_type();
  if (kernels_ == KernelChoice::kAuto && rows.is_cpu())
    return type == at::kFloat && row_products_support(rows, std::max(hidden, out));
  const bool supported = gelu_rows_support(rows.device(), type, hidden) &&
                         (!layer_norm_ || row_ops_support(rows.device(), type, out));
  if (kernels_ == KernelChoice::kFused && !supported) {
    throw ConfigError("model.kernels",
                      concat("there are no fused kernels for rows of ", hidden, " hidden and ", out,
                             " channels of type ", at::toString(type)),
                      "use \"auto\" or \"reference\"");
  }
  return supported;
}

FusedMlpWeights Mlp::fused_weights(at::ScalarType type) const {
  FusedMlpWeights weights;
  const auto add = [&](const Linear& linear) {
    weights.parameters.push_back(linear.weight);
    weights.parameters.push_back(linear.bias);
    weights.working.push_back(linear.working_weight(type));
  };
  for (const HiddenLayer& layer : hidden_)
    add(layer.linear);
  add(last_);
  weights.working.push_back(last_.set->working(last_.bias, type));
  if (layer_norm_) {
    weights.parameters.push_back(layer_norm_->weight());
    weights.parameters.push_back(layer_norm_->bias());
  }
  return weights;
}

FusedMlpResult Mlp::fused(FusedMlpPlan plan, const std::vector<at::Tensor>& rows) const {
  if (layer_norm_) plan.layer_norm_eps = layer_norm_->eps();
  return fused_mlp(plan, rows, fused_weights(rows[0].scalar_type()));
}

at::Tensor Mlp::fused_sources(const at::Tensor& x_source) const {
  return source_product(x_source, fused_weights(x_source.scalar_type()));
}

at::Tensor Mlp::forward(const at::Tensor& x, Keep hidden) const {
  if (is_fused(x)) return fused({.hidden = hidden}, {x}).rows;
  const at::Tensor copy = ranks_.copied(without_filling(x, hidden_[0].linear.weight.size(1)));
  return run([&](const Linear& linear) { return linear.forward(copy); });
}

at::Tensor Mlp::forward_filled(const at::Tensor& x, Keep hidden) const {
  return is_fused(x) ? fused({.hidden = hidden, .filled = true}, {x}).rows : forward(x);
}

at::Tensor Mlp::forward_added(const at::Tensor& x, const at::Tensor& to, bool unread) const {
  if (layer_norm_ || !is_fused(x)) return to + forward(x);
  return fused({.adds_rows = true, .unread = unread}, {x, to}).rows;
}

at::Tensor Mlp::forward_pair(const at::Tensor& a, const at::Tensor& b) const {
  const at::Tensor ca = ranks_.copied(a), cb = ranks_.copied(b);
  return run([&](const Linear& linear) {
    const std::vector<at::Tensor> w = linear.weight.to(a.scalar_type()).chunk(2, 1);
    return at::addmm(at::linear(ca, w[0], linear.bias.to(a.scalar_type())), cb, w[1].t());
  });
}

at::Tensor Mlp::forward_twice(const at::Tensor& x) const {
  const at::Tensor copy = ranks_.copied(x);
  return run([&](const Linear& linear) {
    const std::vector<at::Tensor> w = linear.weight.chunk(2, 1);
    const at::Tensor sum = (w[0] + w[1]).to(x.scalar_type());
    return at::linear(copy, sum, linear.bias.to(x.scalar_type()));
  });
}

at::Tensor Mlp::forward_edges(const at::Tensor& x_target, const at::Tensor& x_source,
                              const at::Tensor& e, const EdgeIndexPtr& edges) const {
  const at::Tensor target = ranks_.copied(x_target), source = ranks_.copied(x_source),
                   edge = ranks_.copied(e);
  return run([&](const Linear& linear) {
    return edge_linear(target, source, edge, linear.weight, linear.bias, edges);
  });
}

}  // namespace aifs::model
