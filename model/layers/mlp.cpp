// SPDX-License-Identifier: Apache-2.0
#include "model/layers/mlp.h"

#include <ATen/ATen.h>

#include <cmath>

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
    : activation_(activation_of(options)) {
  const ParameterScope layers = scope / "mlp";
  const bool gated = options.implementation != MlpImplementation::kMlp;
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
