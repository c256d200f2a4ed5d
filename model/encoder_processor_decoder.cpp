// SPDX-License-Identifier: Apache-2.0
#include "model/encoder_processor_decoder.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/check.h"

namespace aifs::model {

namespace {

constexpr const char* kDataset = "data";  // Anemoi's name of a single dataset
constexpr const char* kMapper = "0";      // and of the only encoder and decoder

GraphConvOptions conv_options(const ModelOptions& model, const BlockOptions& block) {
  return {.channels = model.channels,
          .hidden = static_cast<int64_t>(
              std::floor(static_cast<double>(model.channels) * block.mlp_hidden_ratio + 0.5)),
          .extra_layers = block.mlp_extra_layers + 1,
          .implementation = block.mlp_implementation,
          .layer_norm_eps = model.layer_norm_eps,
          .kernels = model.kernels,
          .recompute = model.recompute,
          .recompute_embeddings = model.recompute || model.recompute_embeddings,
          .recompute_messages = model.recompute || model.recompute_messages,
          .chunks = model.decoder_chunks};
}

}  // namespace

EncoderProcessorDecoder::EncoderProcessorDecoder(ParameterSet& parameters,
                                                 const ModelOptions& options,
                                                 const GraphTensors& graph,
                                                 const FieldLayout& layout)
    : layout_(layout), latent_skip_(options.latent_skip), residual_(options.residual) {
  AIFS_CHECK(layout.input_prognostic.size() == layout.output_prognostic.size(),
             "prognostic variables differ between input and output");
  const ParameterScope root(parameters);
  const TrainableOptions& trainable = options.trainable_parameters;
  const ParameterScope attributes = root / "node_attributes";
  data_attributes_ = NodeAttributes(attributes, "data", graph.data_latlon_rad, trainable.data);
  hidden_attributes_ =
      NodeAttributes(attributes, "hidden", graph.hidden_latlon_rad, trainable.hidden);

  encoder_ = std::make_unique<GnnEncoder>(
      root / "encoder" / kMapper, root / "encoder_graph_provider" / kDataset,
      conv_options(options, options.encoder), graph.encoder, trainable.data_to_hidden,
      layout.times_in * layout.num_inputs + data_attributes_.width(), hidden_attributes_.width());
  processor_ =
      std::make_unique<GnnProcessor>(root / "processor", root / "processor_graph_provider",
                                     conv_options(options, options.processor), graph.processor,
                                     trainable.hidden_to_hidden, options.layers);
  decoder_ = std::make_unique<GnnDecoder>(
      root / "decoder" / kMapper, root / "decoder_graph_provider" / kDataset,
      conv_options(options, options.decoder), graph.decoder, trainable.hidden_to_data,
      layout.times_out * layout.num_outputs());

  input_prognostic_ = parameters.add_constant(at::tensor(layout.input_prognostic, at::kLong));
  output_prognostic_ = parameters.add_constant(at::tensor(layout.output_prognostic, at::kLong));
  for (size_t i = 0; i < options.bounding.size(); ++i) {
    boundings_.emplace_back(root / "boundings" / kDataset / static_cast<int64_t>(i),
                            options.bounding[i], layout.outputs, concat("model.bounding.", i));
  }
}

at::Tensor EncoderProcessorDecoder::forward(const at::Tensor& x) const {
  AIFS_CHECK(x.dim() == 5 && x.size(1) == layout_.times_in && x.size(4) == layout_.num_inputs,
             "input of shape ", x.sizes(), ", expected (B, ", layout_.times_in, ", E, N, ",
             layout_.num_inputs, ")");
  const int64_t batch = x.size(0), ensemble = x.size(2), nodes = x.size(3);
  const int64_t copies = batch * ensemble;

  // Rows are (b, e, n), columns (time, variable).
  at::Tensor attributes = data_attributes_.forward();
  const at::Tensor rows =
      x.permute({0, 2, 3, 1, 4}).reshape({copies * nodes, -1}).to(attributes.scalar_type());
  if (copies > 1) attributes = attributes.repeat({copies, 1});
  const Encoded encoded =
      encoder_->forward(at::cat({rows, attributes}, 1), hidden_attributes_.forward(), copies);
  at::Tensor latent = processor_->forward(encoded.latent, copies);
  if (latent_skip_) latent = latent + encoded.latent;
  const at::Tensor decoded = decoder_->forward(latent, encoded.data, copies);

  at::Tensor y = decoded.view({batch, ensemble, nodes, layout_.times_out, layout_.num_outputs()})
                     .permute({0, 3, 1, 2, 4})
                     .to(x.scalar_type());
  if (residual_ == ResidualKind::kSkip) y = with_residual(y, x);
  for (const Bounding& bounding : boundings_)
    y = bounding.forward(y);
  return y;
}

at::Tensor EncoderProcessorDecoder::with_residual(const at::Tensor& y, const at::Tensor& x) const {
  const at::Tensor newest =
      x.select(1, layout_.times_in - 1).index_select(-1, input_prognostic_).unsqueeze(1);
  return y.index_add(-1, output_prognostic_, newest.expand({-1, layout_.times_out, -1, -1, -1}));
}

}  // namespace aifs::model
