// SPDX-License-Identifier: Apache-2.0
#include "model/layers/mlp.h"

#include <ATen/ATen.h>

#include <cmath>

namespace aifs::model {

Linear::Linear(const ParameterScope& scope, int64_t in, int64_t out) {
  const Init init = Init::uniform(1.0 / std::sqrt(static_cast<double>(in)));
  weight = scope.add("weight", {out, in}, init);
  bias = scope.add("bias", {out}, init);
}

at::Tensor Linear::forward(const at::Tensor& x) const {
  return at::linear(x, weight, bias);
}

LayerNorm::LayerNorm(const ParameterScope& scope, int64_t width, double eps_) : eps(eps_) {
  weight = scope.add("weight", {width}, Init::ones());
  bias = scope.add("bias", {width}, Init::zeros());
}

at::Tensor LayerNorm::forward(const at::Tensor& x) const {
  // The type of the input stays that of the output, also under autocast (Anemoi's
  // AutocastLayerNorm); its statistics are fp32 in either case.
  return at::layer_norm(x, weight.sizes(), weight, bias, eps).to(x.scalar_type());
}

Mlp::Mlp(const ParameterScope& scope, const MlpOptions& options)
    : implementation_(options.implementation) {
  const ParameterScope layers = scope / "mlp";
  const bool gated = implementation_ != MlpImplementation::kMlp;
  const int64_t num_hidden = options.extra_layers + 1;
  for (int64_t i = 0; i < num_hidden; ++i) {
    const int64_t in = i == 0 ? options.in : options.hidden;
    HiddenLayer layer;
    if (gated) {
      layer.gate = Linear(layers / i / "gate_proj", in, options.hidden);
      layer.linear = Linear(layers / i / "value_proj", in, options.hidden);
    } else {
      layer.linear = Linear(layers / (2 * i), in, options.hidden);  // activations have numbers too
    }
    hidden_.push_back(std::move(layer));
  }
  last_ = Linear(layers / (gated ? num_hidden : 2 * num_hidden), options.hidden, options.out);
  if (options.layer_norm) {
    layer_norm_ = LayerNorm(scope / "layer_norm", options.out, options.layer_norm_eps);
  }
}

at::Tensor Mlp::activate(const at::Tensor& x) const {
  switch (implementation_) {
    case MlpImplementation::kMlp:
    case MlpImplementation::kGeglu:
      return at::gelu(x);
    case MlpImplementation::kGlu:
      return at::sigmoid(x);
    case MlpImplementation::kSwiglu:
      return at::silu(x);
    case MlpImplementation::kReglu:
      return at::relu(x);
  }
  return x;
}

template <class FirstLinear>
at::Tensor Mlp::run(FirstLinear&& first_linear) const {
  at::Tensor h;
  for (size_t i = 0; i < hidden_.size(); ++i) {
    const HiddenLayer& layer = hidden_[i];
    const auto apply = [&](const Linear& linear) {
      return i == 0 ? first_linear(linear) : linear.forward(h);
    };
    const at::Tensor activated = activate(apply(layer.gate ? *layer.gate : layer.linear));
    h = layer.gate ? activated * apply(layer.linear) : activated;
  }
  h = last_.forward(h);
  return layer_norm_ ? layer_norm_->forward(h) : h;
}

at::Tensor Mlp::forward(const at::Tensor& x) const {
  return run([&](const Linear& linear) { return linear.forward(x); });
}

at::Tensor Mlp::forward_pair(const at::Tensor& a, const at::Tensor& b) const {
  return run([&](const Linear& linear) {
    const std::vector<at::Tensor> w = linear.weight.chunk(2, 1);
    return at::addmm(at::linear(a, w[0], linear.bias), b, w[1].t());
  });
}

at::Tensor Mlp::forward_twice(const at::Tensor& x) const {
  return run([&](const Linear& linear) {
    const std::vector<at::Tensor> w = linear.weight.chunk(2, 1);
    return at::linear(x, w[0] + w[1], linear.bias);
  });
}

at::Tensor Mlp::forward_edges(const at::Tensor& x_target, const at::Tensor& x_source,
                              const at::Tensor& e, const EdgeIndexPtr& edges) const {
  return run([&](const Linear& linear) {
    return edge_linear(x_target, x_source, e, linear.weight, linear.bias, edges);
  });
}

}  // namespace aifs::model
