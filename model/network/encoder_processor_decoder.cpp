// SPDX-License-Identifier: Apache-2.0
#include "model/network/encoder_processor_decoder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "core/check.h"
#include "model/base/filling.h"
#include "model/nodes/field_rows.h"

namespace aifs::model {

namespace {

constexpr int64_t kCoordinateWidth = 4;  // sines and cosines of latitude and longitude

}  // namespace

std::vector<int64_t> FieldLayout::input_forcing() const {
  std::vector<int64_t> list;
  for (int64_t column = 0; column < num_inputs; ++column) {
    if (std::find(input_prognostic.begin(), input_prognostic.end(), column) ==
        input_prognostic.end()) {
      list.push_back(column);
    }
  }
  return list;
}

NetworkPlan NetworkPlan::single(const ModelOptions& options, const FieldLayout& layout) {
  const TrainableOptions& trainable = options.trainable_parameters;
  NetworkPlan plan;
  plan.options = options;
  plan.aggregation = options.aggregation;
  plan.meshes = options.meshes();
  for (const std::string& mesh : plan.meshes)
    plan.node_trainable[mesh] = trainable.of_mesh(mesh);
  plan.node_trainable["data"] = trainable.of_data("data");
  plan.datasets = {{.encoder = options.encoder,
                    .decoder = options.decoder,
                    .encoder_trainable = options.encoder_features(),
                    .decoder_trainable = options.decoder_features(),
                    .layout = layout,
                    .residual = options.residual,
                    .stdev_tendency = layout.stdev_tendency,
                    .bounding = options.bounding}};
  return plan;
}

void NetworkPlan::validate() const {
  const bool concat_latents = aggregation == Aggregation::kConcat;
  const int64_t processor_width = options.width(options.processor);
  int64_t latent_width = 0;
  for (const DatasetPlan& dataset : datasets) {
    latent_width += options.width(dataset.encoder);
    ModelOptions one = options;
    one.encoder = dataset.encoder;
    one.decoder = dataset.decoder;
    if (concat_latents) one.encoder.channels = processor_width;  // looked at below
    one.validate_parts(dataset.paths);
  }
  if (concat_latents && options.hierarchy.meshes.empty() && latent_width != processor_width) {
    throw ConfigError(
        "model.processor.channels",
        concat("is ", processor_width, ", the encoders together give ", latent_width));
  }
}

EncoderProcessorDecoder::EncoderProcessorDecoder(ParameterSet& parameters,
                                                 const ModelOptions& options,
                                                 const GraphTensors& graph,
                                                 const FieldLayout& layout)
    : EncoderProcessorDecoder(parameters, NetworkPlan::single(options, layout), graph) {}

EncoderProcessorDecoder::EncoderProcessorDecoder(ParameterSet& parameters, const NetworkPlan& plan,
                                                 const GraphTensors& graph)
    : parameters_(&parameters),
      latent_skip_(plan.options.latent_skip),
      has_step_input_(plan.options.ensemble.noise != NoiseKind::kNone),
      uses_host_memory_(plan.options.processor.offload > 0),
      num_members_(plan.options.ensemble.members),
      aggregation_(plan.aggregation),
      mesh_(plan.meshes.front()) {
  plan.validate();
  const ParameterScope root(parameters);
  add_attributes(plan, graph);
  for (const DatasetPlan& d : plan.datasets)
    add_encoder(plan, d, graph);
  if (has_step_input_) {
    const EnsembleOptions& ensemble = plan.options.ensemble;
    noise_ =
        std::make_unique<NoiseInjector>((root / "noise_injector").of_layer(0),
                                        NoiseOptions{ensemble.noise_channels, ensemble.noise_hidden,
                                                     ensemble.noise_std, ensemble.noise_activation},
                                        graph.nodes(mesh_), plan.noise_projection);
  }
  add_levels(plan, graph);
  for (size_t i = 0; i < plan.datasets.size(); ++i)
    add_decoder(plan, plan.datasets[i], datasets_[i], graph);
  for (size_t i = 0; i < plan.datasets.size(); ++i)
    add_output(plan.datasets[i], datasets_[i], graph);
}

void EncoderProcessorDecoder::add_attributes(const NetworkPlan& plan, const GraphTensors& graph) {
  const ParameterScope scope = ParameterScope(*parameters_) / "node_attributes";
  const auto add = [&](const ParameterScope& place, const std::string& name) {
    if (attributes_.count(name) != 0) return;
    const auto trainable = plan.node_trainable.find(name);
    attributes_.emplace(
        name, NodeAttributes(place, name, graph.nodes(name),
                             trainable == plan.node_trainable.end() ? 0 : trainable->second));
  };
  for (const DatasetPlan& d : plan.datasets)
    add(scope, d.name);
  add(scope, mesh_);
  const int64_t level_layers = plan.options.hierarchy.layers();
  for (size_t i = 1; i < plan.meshes.size(); ++i)
    add(scope.of_layer(static_cast<int64_t>(i) * level_layers), plan.meshes[i]);
}

int64_t EncoderProcessorDecoder::data_width(const Dataset& dataset) const {
  return dataset.layout.times_in * dataset.layout.num_inputs +
         attributes_.at(dataset.nodes).width() + (has_step_input_ ? 1 : 0);
}

void EncoderProcessorDecoder::add_encoder(const NetworkPlan& plan, const DatasetPlan& d,
                                          const GraphTensors& graph) {
  AIFS_CHECK(d.layout.input_prognostic.size() == d.layout.output_prognostic.size(),
             "prognostic variables differ between input and output");
  const ParameterScope root(*parameters_);
  Dataset& dataset = datasets_.emplace_back();
  dataset.layout = d.layout;
  dataset.nodes = d.name;
  ParameterScope scope = root / "encoder" / d.encoder_name;
  for (const DatasetPlan& other : plan.datasets) {
    if (&other == &d) break;
    if (other.encoder_name == d.encoder_name) scope = scope.shared();
  }
  dataset.encoder = make_encoder(scope, root / "encoder_graph_provider" / d.name, d.encoder,
                                 plan.options.layer_norm_eps,
                                 {graph, d.name, mesh_, d.encoder_trainable, plan.options.kernels},
                                 {.channels = plan.options.width(d.encoder),
                                  .source = data_width(dataset),
                                  .target = attributes_.at(mesh_).width()});
}

void EncoderProcessorDecoder::add_levels(const NetworkPlan& plan, const GraphTensors& graph) {
  const ParameterScope root(*parameters_);
  const ModelOptions& options = plan.options;
  const HierarchyOptions& hierarchy = options.hierarchy;
  const LayerNormOptions plain{.eps = options.layer_norm_eps};
  const int64_t edge_trainable = options.processor_features();
  const auto level_processor = [&](const std::string& name, const std::string& mesh,
                                   int64_t channels, const LayerRange& layers) {
    return make_processor((root / name / mesh).from_layer(layers.first),
                          (root / (name + "_graph_providers") / mesh).from_layer(layers.first),
                          options.processor, plain,
                          {graph, mesh, mesh, edge_trainable, options.kernels}, channels,
                          hierarchy.level_layers);
  };
  int64_t channels = options.width(options.processor);
  layers_ = {0, options.num_layers()};
  for (size_t i = 0; i + 1 < plan.meshes.size(); ++i, channels *= 2) {
    const std::string &mesh = plan.meshes[i], &coarser = plan.meshes[i + 1];
    Level& level = levels_.emplace_back();
    level.coarser = coarser;
    level.down_layers = {layers_.first, layers_.first + hierarchy.layers()};
    level.up_layers = {layers_.end - hierarchy.layers(), layers_.end};
    layers_ = {level.down_layers.end, level.up_layers.first};
    if (hierarchy.level_processing) {
      level.down = level_processor("down_level_processor", mesh, channels, level.down_layers);
      level.up = level_processor("up_level_processor", mesh, channels, level.up_layers);
    }
    const auto down = [&](const std::string& name) {
      return (root / name / mesh).of_layer(layers_.first);
    };
    const auto up = [&](const std::string& name) {
      return (root / name / mesh).of_layer(layers_.end - 1);
    };
    const MapperWidths widths{
        .channels = 2 * channels, .source = channels, .target = attributes_.at(coarser).width()};
    level.upscale = make_encoder(
        down("upscale"), down("upscale_graph_providers"), hierarchy.upscale, options.layer_norm_eps,
        {graph, mesh, coarser, options.upscale_features(), options.kernels}, widths);
    level.downscale =
        make_decoder(up("downscale"), up("downscale_graph_providers"), hierarchy.downscale,
                     /*zero_extractor=*/false, options.layer_norm_eps,
                     {graph, coarser, mesh, options.downscale_features(), options.kernels},
                     {.channels = 2 * channels,
                      .source = 2 * channels,
                      .target = handed_on_width(hierarchy.upscale, widths),
                      .out = channels});
  }
  LayerNormOptions norm = plain;
  if (has_step_input_) norm.condition_width = options.ensemble.noise_channels;
  const std::string& deepest = plan.meshes.back();
  processor_ = make_processor(
      (root / "processor").from_layer(layers_.first),
      (root / "processor_graph_provider").from_layer(layers_.first), options.processor, norm,
      {graph, deepest, deepest, edge_trainable, options.kernels}, channels, options.layers);
}

void EncoderProcessorDecoder::add_decoder(const NetworkPlan& plan, const DatasetPlan& d,
                                          Dataset& dataset, const GraphTensors& graph) {
  const ParameterScope root(*parameters_);
  const FieldLayout& layout = d.layout;
  dataset.target_features = d.decoder.features(d.paths.decoder);
  const MapperWidths encoder{.channels = plan.options.width(d.encoder),
                             .source = data_width(dataset)};
  const int64_t num_forcing =
      layout.num_inputs - static_cast<int64_t>(layout.input_prognostic.size());
  int64_t target = 0;
  for (const TargetFeature feature : dataset.target_features) {
    switch (feature) {
      case TargetFeature::kEncodedData:
        target += handed_on_width(d.encoder, encoder);
        break;
      case TargetFeature::kCoordinates:
        target += kCoordinateWidth;
        break;
      case TargetFeature::kForcings:
        target += layout.times_in * num_forcing;
        break;
      case TargetFeature::kPrognostics:
        target += layout.times_in * (layout.num_inputs - num_forcing);
        break;
      case TargetFeature::kTrainable:
        target += attributes_.at(dataset.nodes).width() - kCoordinateWidth;
        break;
    }
  }
  dataset.decoder = make_decoder((root / "decoder" / d.decoder_name).on_last_stage(),
                                 (root / "decoder_graph_provider" / d.name).on_last_stage(),
                                 d.decoder, d.decoder.zero_extractor, plan.options.layer_norm_eps,
                                 {graph, mesh_, d.name, d.decoder_trainable, plan.options.kernels},
                                 {.channels = plan.options.width(d.decoder),
                                  .source = plan.options.width(plan.options.processor),
                                  .target = target,
                                  .out = layout.times_out * layout.num_outputs()});
}

void EncoderProcessorDecoder::add_output(const DatasetPlan& d, Dataset& dataset,
                                         const GraphTensors& graph) {
  const ParameterScope root(*parameters_);
  const FieldLayout& layout = d.layout;
  const auto columns = [&](const std::vector<int64_t>& list) {
    return parameters_->add_constant(at::tensor(list, at::kLong));
  };
  dataset.input_forcing = columns(layout.input_forcing());
  dataset.input_prognostic = columns(layout.input_prognostic);
  ResidualInputs inputs{.times_in = layout.times_in,
                        .input_names = layout.input_names,
                        .input_prognostic = layout.input_prognostic,
                        .stdev_tendency = d.stdev_tendency,
                        .nodes = graph.nodes(d.name),
                        .path = d.paths.residual};
  if (!layout.outputs.stdev.empty()) {
    for (const int64_t column : layout.output_prognostic)
      inputs.stdev.push_back(layout.outputs.stdev[static_cast<size_t>(column)]);
  }
  dataset.residual = make_residual(root / "residual" / d.name, d.residual, inputs);
  if (dataset.residual) {
    std::vector<int64_t> guess = layout.input_prognostic;
    if (!dataset.residual->input_time()) std::iota(guess.begin(), guess.end(), 0);
    dataset.guess_columns =
        GuessColumns(*parameters_, layout.output_prognostic, guess, layout.num_outputs());
  }
  for (size_t i = 0; i < d.bounding.size(); ++i) {
    dataset.boundings.emplace_back(root / "boundings" / d.name / static_cast<int64_t>(i),
                                   d.bounding[i], layout.outputs,
                                   concat(d.paths.model, ".bounding.", i));
  }
}

at::Tensor EncoderProcessorDecoder::forward(const at::Tensor& x, const StepContext& context) const {
  AIFS_CHECK(datasets_.size() == 1, "one tensor for ", datasets_.size(), " datasets");
  return forward(std::vector{x}, context)[0];
}

at::Tensor EncoderProcessorDecoder::prepare(const at::Tensor& x, size_t dataset) const {
  const FieldLayout& layout = datasets_[dataset].layout;
  AIFS_CHECK(x.dim() == 5 && x.size(1) == layout.times_in && x.size(4) == layout.num_inputs,
             "input of shape ", x.sizes(), ", expected (B, ", layout.times_in, ", E, N, ",
             layout.num_inputs, ")");
  const auto& residual = datasets_[dataset].residual;
  return residual ? residual->prepare(x) : x;
}

bool EncoderProcessorDecoder::filters(size_t dataset) const {
  return datasets_[dataset].residual && datasets_[dataset].residual->changes_input();
}

std::vector<at::Tensor> EncoderProcessorDecoder::forward(const std::vector<at::Tensor>& inputs,
                                                         const StepContext& context) const {
  parameters_->update_working_values();
  AIFS_CHECK(inputs.size() == datasets_.size(), inputs.size(), " tensors for ", datasets_.size(),
             " datasets");
  parallel::StageLinks& stages = parameters_->stages().links();
  std::vector<at::Tensor> x;
  for (size_t i = 0; i < inputs.size(); ++i)
    x.push_back(stages.is_first() ? prepare(inputs[i], i) : inputs[i]);
  const int64_t batch = x[0].size(0), ensemble = x[0].size(2), copies = batch * ensemble;
  const at::Device device = x[0].device();

  // The first stage's work, and what the last one needs of it.
  std::vector<at::Tensor> latents, targets;
  for (size_t i = 0; i < x.size() && stages.is_first(); ++i) {
    const Encoded encoded = datasets_[i].encoder->forward(
        data_rows(datasets_[i], x[i], context.step), attributes_.at(mesh_).forward(), copies);
    latents.push_back(encoded.latent);
    targets.push_back(target_rows(datasets_[i], x[i], encoded.data));
  }
  for (size_t i = 0; i < x.size() && stages.is_first(); ++i) {
    if (filters(i)) targets.push_back(x[i]);
  }
  targets = stages.first_to_last(targets, device);
  for (size_t i = x.size(); i-- > 0 && stages.is_last();) {
    if (!filters(i)) continue;
    x[i] = targets.back();
    targets.pop_back();
  }
  at::Tensor noise = context.noise;
  if (noise_ && !noise.defined()) {
    noise = noise_->draw(batch, ensemble,
                         at::TensorOptions(parameters_->activation_type()).device(device));
  }
  const at::Tensor latent = process(aggregate(latents), noise, copies, device);
  std::vector<at::Tensor> y(x.size());
  for (size_t i = 0; i < x.size() && stages.is_last(); ++i)
    y[i] = assemble(datasets_[i], datasets_[i].decoder->forward(latent, targets[i], copies), x[i]);
  parameters_->stash().settle();
  return y;
}

at::Tensor EncoderProcessorDecoder::data_rows(const Dataset& dataset, const at::Tensor& x,
                                              int64_t step) const {
  const int64_t copies = x.size(0) * x.size(2);
  at::Tensor beside = repeat_rows(attributes_.at(dataset.nodes).forward(), copies);
  if (has_step_input_) {
    const at::Tensor first = at::full(
        {beside.size(0), 1}, static_cast<double>(std::min<int64_t>(1, step)), beside.options());
    beside = at::cat({beside, first}, 1);
  }
  return field_rows(x, beside, dataset.encoder->takes_filling());
}

at::Tensor EncoderProcessorDecoder::target_rows(const Dataset& dataset, const at::Tensor& x,
                                                const at::Tensor& encoded) const {
  const int64_t copies = x.size(0) * x.size(2);
  const auto inputs = [&](const at::Tensor& variables) {
    return x.index_select(-1, variables)
        .permute({0, 2, 3, 1, 4})
        .reshape({copies * x.size(3), x.size(1) * variables.size(0)});
  };
  const auto attributes = [&](int64_t first, int64_t width) {
    return repeat_rows(attributes_.at(dataset.nodes).forward().narrow(1, first, width), copies);
  };
  std::vector<at::Tensor> columns;
  for (const TargetFeature feature : dataset.target_features) {
    switch (feature) {
      case TargetFeature::kEncodedData:
        columns.push_back(encoded);
        break;
      case TargetFeature::kCoordinates:
        columns.push_back(attributes(0, kCoordinateWidth));
        break;
      case TargetFeature::kForcings:
        columns.push_back(inputs(dataset.input_forcing));
        break;
      case TargetFeature::kPrognostics:
        columns.push_back(inputs(dataset.input_prognostic));
        break;
      case TargetFeature::kTrainable:
        columns.push_back(
            attributes(kCoordinateWidth, attributes_.at(dataset.nodes).width() - kCoordinateWidth));
        break;
    }
  }
  return columns.size() == 1 ? columns[0] : at::cat(columns, 1);
}

at::Tensor EncoderProcessorDecoder::aggregate(const std::vector<at::Tensor>& latents) const {
  if (latents.empty()) return {};
  if (latents.size() == 1) return latents[0];
  if (aggregation_ == Aggregation::kConcat) return at::cat(latents, 1);
  at::Tensor sum = latents[0];
  for (size_t i = 1; i < latents.size(); ++i)
    sum = sum + latents[i];
  return aggregation_ == Aggregation::kSum ? sum : sum / static_cast<double>(latents.size());
}

at::Tensor EncoderProcessorDecoder::process(const at::Tensor& latent, const at::Tensor& noise,
                                            int64_t copies, at::Device device) const {
  StageWalk walk(parameters_->stages(), latent, copies, device);
  // Down to the coarsest mesh, remembering what the finer ones held.
  for (const Level& level : levels_) {
    if (level.down) walk.run(*level.down, level.down_layers);
    walk.go_to(level.down_layers.end);
    walk.keep(walk.x());
    Encoded encoded;
    if (walk.is_here()) {
      encoded = level.upscale->forward(walk.x(), attributes_.at(level.coarser).forward(), copies);
    }
    walk.keep(encoded.data);
    walk.set_x(encoded.latent);
  }
  walk.go_to(layers_.first);
  if (latent_skip_) walk.keep(walk.x());
  walk.run(*processor_, layers_, noise_ && walk.is_here() ? noise_->forward(noise) : at::Tensor());
  if (latent_skip_) {
    const at::Tensor skip = walk.take();
    if (walk.is_here()) walk.set_x(walk.x() + skip);
  }
  // And up again.
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    const at::Tensor handed_on = walk.take(), skip = walk.take();
    if (walk.is_here()) {
      const at::Tensor finer = level->downscale->forward(walk.x(), handed_on, copies);
      walk.set_x(without_filling(finer, skip.size(1)) + skip);
    }
    if (level->up) walk.run(*level->up, level->up_layers);
  }
  walk.go_to_end();
  return walk.x();
}

at::Tensor EncoderProcessorDecoder::draw_noise(const at::Tensor& x) const {
  return noise_ ? noise_->draw(x.size(0), x.size(2), x.options()) : at::Tensor();
}

at::Tensor EncoderProcessorDecoder::residual(const at::Tensor& x, size_t dataset) const {
  const auto& residual = datasets_[dataset].residual;
  return residual ? residual->forward(residual->prepare(x)) : at::Tensor();
}

at::Tensor EncoderProcessorDecoder::assemble(const Dataset& dataset, const at::Tensor& decoded,
                                             const at::Tensor& x) const {
  const FieldLayout& layout = dataset.layout;
  at::Tensor guess;
  if (dataset.residual) {
    const std::optional<int64_t> time = dataset.residual->input_time();
    guess = time ? x.narrow(1, *time, 1) : dataset.residual->forward(x);
  }
  return predict(decoded, {x.size(0), layout.times_out, x.size(2), x.size(3), layout.num_outputs()},
                 x.scalar_type(), guess, dataset.guess_columns, dataset.boundings);
}

}  // namespace aifs::model
