// SPDX-License-Identifier: Apache-2.0
#include "model/layers/point_wise.h"

namespace aifs::model {

PointWiseEncoder::PointWiseEncoder(const ParameterScope& scope, const PointWiseOptions& options,
                                   int64_t data_width)
    : emb_nodes_src_(scope / "emb_nodes_src", data_width, options.channels) {}

Encoded PointWiseEncoder::forward(const at::Tensor& x_data, const at::Tensor& /*x_hidden*/,
                                  int64_t /*copies*/) const {
  return {x_data, emb_nodes_src_.forward(x_data)};
}

PointWiseProcessor::PointWiseProcessor(const ParameterScope& scope, const PointWiseOptions& options,
                                       int64_t num_layers)
    : options_(options), units_(scope) {
  for (int64_t i = 0; i < num_layers; ++i) {
    const ParameterScope mlp = (scope / "proc" / i / "mlp").of_layer(i);
    Layer& layer = layers_.emplace_back();
    layer.in = Linear(mlp / 0, options.channels, options.hidden);
    layer.norm = LayerNorm(mlp / 1, options.hidden, options.norm);
    if (options.hidden != options.channels) {
      layer.out = Linear(mlp / 3, options.hidden, options.channels);
    }
    units_.end_layer();
  }
}

Processor::State PointWiseProcessor::run(const State& state, int64_t /*copies*/) const {
  std::vector<Step> steps;
  for (const Layer& layer : layers_) {
    steps.push_back([this, &layer](const TensorList& in) -> TensorList {
      const at::Tensor h =
          activate(layer.norm.forward(layer.in.forward(in[0])), options_.activation);
      return {layer.out.weight.defined() ? layer.out.forward(h) : h};
    });
  }
  return units_.run(steps, {options_.recompute, options_.chunks, options_.offload}, state, 1);
}

PointWiseDecoder::PointWiseDecoder(const ParameterScope& scope, const PointWiseOptions& options,
                                   int64_t latent_width, int64_t out_width)
    : norm_(scope / "node_data_extractor" / 0, latent_width, options.norm),
      linear_(scope / "node_data_extractor" / 1, latent_width, out_width, true,
              options.zero_extractor ? LinearStart::kZeros : LinearStart::kUniform) {}

at::Tensor PointWiseDecoder::forward(const at::Tensor& latent, const at::Tensor& /*data*/,
                                     int64_t /*copies*/) const {
  return linear_.forward(norm_.forward(latent));
}

}  // namespace aifs::model
