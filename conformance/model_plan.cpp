// SPDX-License-Identifier: Apache-2.0
#include "conformance/model_plan.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "anemoi/part_sections.h"
#include "conformance/anemoi_form.h"
#include "conformance/report.h"
#include "conformance/tensors.h"

namespace aifs::conformance {

namespace {

using model::BlockKind;

template <class T>
T value_or(const Json& json, const char* key, T otherwise) {
  return json.contains(key) && !json[key].is_null() ? json[key].get<T>() : otherwise;
}

std::string class_of(const Json& json) {
  const auto name = json.at("class").get<std::string>();
  return name.substr(name.rfind('.') + 1);  // with or without its module
}

// ------------------------------------------------------------------------------------- parts ---

BlockKind kind_of(const std::string& name) {
  if (name == "NoOpProcessor") return BlockKind::kNone;
  static const std::vector<std::pair<std::string, BlockKind>> families{
      {"GNN", BlockKind::kGnn},
      {"GraphTransformer", BlockKind::kGraphTransformer},
      {"Transformer", BlockKind::kTransformer},
      {"PointWise", BlockKind::kPointWise}};
  for (const auto& [prefix, kind] : families) {
    if (!name.starts_with(prefix)) continue;
    for (const char* rest : {"ForwardMapper", "BackwardMapper", "Processor", "MLPProcessor"}) {
      if (name == prefix + rest) return kind;
    }
  }
  throw NotSupported(concat("class ", name));
}

std::string lower_snake(const std::string& name) {
  std::string text;
  for (size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    const bool new_word =
        i > 0 && std::isupper(c) && std::islower(static_cast<unsigned char>(name[i - 1]));
    if (new_word) text += '_';
    text += static_cast<char>(std::tolower(c));
  }
  return text;
}

model::Activation activation_of(const Json& json) {
  require_known_keys(json, {"class", "approximate", "negative_slope", "alpha", "beta", "inplace"});
  if (json.size() > 1) throw NotSupported(concat("options of activation ", json.dump()));
  const std::string name = lower_snake(class_of(json));
  for (const auto& [activation, text] : EnumNames<model::Activation>::table) {
    std::string known(text), asked = name;
    std::erase(known, '_');
    std::erase(asked, '_');
    if (known == asked) return activation;
  }
  throw NotSupported(concat("activation ", class_of(json)));
}

// "GELU (erf)" -> "GELU", whose exact form is the only one there is.
std::string plain_name(const std::string& text) {
  const size_t end = text.find(" (");
  if (end == std::string::npos) return text;
  if (text.substr(end) != " (erf)") throw NotSupported("activation " + text);
  return text.substr(0, end);
}

constexpr double kTorchNormEps = 1e-5;

// What "layer_kernels" change.
void apply_kernels(const Json& kernels, model::BlockOptions& block, bool may_be_conditional) {
  for (const auto& [kernel, options] : kernels.items()) {
    const std::string name = class_of(options);
    if (kernel == "Activation") {
      block.activation = activation_of(options);
    } else if (kernel == "Linear") {
      if (name != "Linear") throw NotSupported("linear " + name);
    } else if (kernel == "QueryNorm" || kernel == "KeyNorm") {
      if ((name != "AutocastLayerNorm" && name != "LayerNorm") || value_or(options, "bias", true)) {
        throw NotSupported(concat(kernel, " ", options.dump()));
      }
      require_known_keys(options, {"class", "bias", "eps"});
      const double eps = value_or(options, "eps", kTorchNormEps);
      if (kernel == "KeyNorm" && kernels.contains("QueryNorm") &&
          value_or(kernels["QueryNorm"], "eps", kTorchNormEps) != eps) {
        throw NotSupported("norms of queries and keys with different eps");
      }
      block.qk_norm_eps = eps;
    } else if (kernel == "LayerNorm") {
      const bool conditional = name == "ConditionalLayerNorm" && may_be_conditional;
      if (name != "LayerNorm" && name != "AutocastLayerNorm" && !conditional) {
        throw NotSupported("norm " + name);
      }
      require_known_keys(options, {"class", "eps", "normalized_shape", "condition_shape",
                                   "zero_init", "autocast"});
      block.norm_eps = value_or(options, "eps", kTorchNormEps);
    } else {
      throw NotSupported("layer kernel " + kernel);
    }
  }
}

model::BlockOptions block_options(const Json& json, bool may_be_conditional = false) {
  require_known_keys(json, {"class",
                            "num_channels",
                            "trainable_size",
                            "sub_graph_edge_attributes",
                            "num_layers",
                            "num_chunks",
                            "mlp_extra_layers",
                            "mlp_hidden_ratio",
                            "mlp_implementation",
                            "num_heads",
                            "attn_channels",
                            "qk_norm",
                            "edge_pre_mlp",
                            "graph_attention_backend",
                            "window_size",
                            "dropout_p",
                            "attention_implementation",
                            "softcap",
                            "use_alibi_slopes",
                            "use_rotary_embeddings",
                            "initialise_data_extractor_zero",
                            "layer_kernels",
                            "shard_strategy",
                            "gradient_checkpointing",
                            "cpu_offload"});
  model::BlockOptions block;
  block.qk_norm_eps = kTorchNormEps;
  block.kind = kind_of(class_of(json));
  const bool has_window = block.kind == BlockKind::kTransformer;
  const bool is_mapper = class_of(json).ends_with("Mapper");
  block.channels = value_or(json, "num_channels", int64_t{0});
  if (block.channels < 0) throw NotSupported(concat("num_channels ", block.channels));
  block.mlp_extra_layers = value_or(json, "mlp_extra_layers", int64_t{0});
  block.mlp_hidden_ratio = value_or(json, "mlp_hidden_ratio", 0.0);
  const auto implementation = value_or(json, "mlp_implementation", std::string("mlp"));
  bool known = false;
  for (const auto& [value, text] : EnumNames<model::MlpImplementation>::table) {
    if (implementation != text) continue;
    block.mlp_implementation = value;
    known = true;
  }
  if (!known) throw NotSupported("mlp_implementation " + implementation);
  block.heads = value_or(json, "num_heads", block.heads);
  block.attention_channels = value_or(json, "attn_channels", int64_t{0});
  block.qk_norm = value_or(json, "qk_norm", false);
  block.edge_pre_mlp = value_or(json, "edge_pre_mlp", false);
  if (has_window) {
    block.window = value_or(json, "window_size", int64_t{0});
    if (block.window == 0 && json.contains("window_size") && !json["window_size"].is_null()) {
      throw NotSupported("a window of 0");
    }
    const auto attention =
        value_or(json, "attention_implementation", std::string("flash_attention"));
    const bool flash = attention == "flash_attention";
    if (!flash && attention != "scaled_dot_product_attention") {
      throw NotSupported("attention_implementation " + attention);
    }
    block.attention = flash ? model::AttentionBackend::kFlash : model::AttentionBackend::kSdpa;
    block.softcap = value_or(json, "softcap", 0.0);
    block.alibi = value_or(json, "use_alibi_slopes", false);
    // With torch's attention the reference passes over it.
    block.rotary = is_mapper && flash && value_or(json, "use_rotary_embeddings", false);
    if (value_or(json, "dropout_p", 0.0) > 0.0) throw NotSupported("dropout");
  }
  if (is_mapper || block.kind != BlockKind::kTransformer) {
    block.chunks = value_or(json, "num_chunks", int64_t{1});
  }
  if (json.contains("layer_kernels")) {
    apply_kernels(json["layer_kernels"], block, may_be_conditional);
  }
  return block;
}

model::DecoderOptions decoder_options(const Json& json, const std::vector<std::string>& features) {
  model::DecoderOptions decoder;
  static_cast<model::BlockOptions&>(decoder) = block_options(json);
  decoder.target_features = features;
  return decoder;
}

// ---------------------------------------------------------------------------------- residual ---

model::SparseMatrix stored_matrix(const SafetensorsFile& tensors, const std::string& index_name,
                                  const std::string& value_name, int64_t rows, int64_t columns) {
  const at::Tensor index = read_tensor(tensors, index_name, at::kLong);
  return model::SparseMatrix::create(index[0], index[1], read_tensor(tensors, value_name), rows,
                                     columns);
}

void read_truncation(const SafetensorsFile& tensors, int64_t num_nodes,
                     model::DatasetPlan& dataset) {
  const std::string prefix = "truncation/";
  if (!tensors.contains(prefix + "down_index")) throw NotSupported("a truncation without matrices");
  const int64_t coarse = tensors.at(prefix + "node_latlon_rad").shape[0];
  dataset.residual.kind = model::ResidualKind::kTruncated;
  dataset.truncation_down =
      stored_matrix(tensors, prefix + "down_index", prefix + "down_value", coarse, num_nodes);
  dataset.truncation_up =
      stored_matrix(tensors, prefix + "up_index", prefix + "up_value", num_nodes, coarse);
}

void read_residual(const Json& json, const SafetensorsFile& tensors, int64_t num_nodes,
                   model::DatasetPlan& dataset) {
  model::ResidualOptions& residual = dataset.residual;
  const std::string name = class_of(json);
  if (name == "SkipConnection") {
    residual.step = value_or(json, "step", int64_t{-1});
  } else if (name == "NoConnection" || name == "NoSkipConnection") {
    residual.kind = model::ResidualKind::kNone;
  } else if (name == "TruncatedConnection") {
    read_truncation(tensors, num_nodes, dataset);
  } else if (name == "ScalarOrnsteinConnection" || name == "SpectralOrnsteinConnection") {
    require_known_keys(
        json, {"class", "theta_init", "theta_buff", "theta_train", "regressors", "lmax", "grid",
               "use_mean", "truncate", "skip_truncate_variables", "anti_aliasing"});
    residual.kind = name.starts_with("Scalar") ? model::ResidualKind::kScalarOrnstein
                                               : model::ResidualKind::kSpectralOrnstein;
    residual.theta_init = value_or(json, "theta_init", 0.0);
    residual.theta_buffer = value_or(json, "theta_buff", 0.0);
    residual.theta_train = value_or(json, "theta_train", true);
    residual.regressors = value_or(json, "regressors", std::vector<std::string>());
    residual.lmax = value_or(json, "lmax", int64_t{2});
    residual.grid = value_or(json, "grid", std::string("regular")) == "octahedral"
                        ? model::SpectralGrid::kOctahedral
                        : model::SpectralGrid::kRegular;
    residual.use_mean = value_or(json, "use_mean", true);
    residual.truncate = value_or(json, "truncate", false);
    // skip_truncate_variables changes nothing in the reference.
    residual.anti_aliasing = value_or(json, "anti_aliasing", true);
  } else {
    throw NotSupported("residual " + name);
  }
}

// ------------------------------------------------------------------------------------- plans ---

model::FieldLayout field_layout(const Json& json, const data::VariableTable& variables,
                                const data::Statistics& statistics) {
  model::FieldLayout layout;
  layout.times_in = json.value("times_in", int64_t{2});
  layout.times_out = json.value("times_out", int64_t{1});
  layout.num_inputs = variables.num_inputs();
  layout.input_names = variables.input_names();
  layout.input_prognostic = variables.input_prognostic();
  layout.output_prognostic = variables.output_prognostic();
  layout.outputs.names = variables.output_names();
  for (const int64_t column : variables.output_columns()) {
    // Without statistics the thresholds of boundings come with the weights.
    const auto at = static_cast<size_t>(column);
    layout.outputs.mean.push_back(statistics.mean.empty() ? 0.0 : statistics.mean[at]);
    layout.outputs.stdev.push_back(statistics.stdev.empty() ? 1.0 : statistics.stdev[at]);
  }
  return layout;
}

void add_bounding(const Json& list, model::DatasetPlan& dataset) {
  for (const Json& bounding : list)
    dataset.bounding.push_back(bounding_options(class_of(bounding), bounding));
}

model::DatasetPlan dataset_plan(const Json& json, const SafetensorsFile& tensors,
                                const CaseDataset& dataset) {
  model::DatasetPlan plan;
  plan.name = dataset.name;
  plan.layout =
      field_layout(json, dataset.variables, statistics_of(tensors, dataset.prefix + "statistics/"));
  const std::string tendencies = dataset.prefix + "statistics_tendencies/stdev";
  if (tensors.contains(tendencies)) {
    const std::vector<double> stdev = tensors.doubles(tendencies);
    for (const int64_t column : dataset.variables.prognostic_columns())
      plan.stdev_tendency.push_back(stdev.at(static_cast<size_t>(column)));
  }
  return plan;
}

int64_t edge_trainable(const Json& part, const Json& widths, const char* key) {
  return value_or(part, "trainable_size", value_or(widths, key, int64_t{0}));
}

// "encoder", "processor" and "decoder" at the top.
model::NetworkPlan simple_plan(const Json& json, const SafetensorsFile& tensors,
                               const graph::Graph& graph) {
  const Json& m = json.at("model");
  require_known_keys(m, {"encoder", "processor", "decoder", "decoder_target_features",
                         "layer_norm_eps", "activation", "latent_skip", "node_trainable",
                         "edge_trainable", "edge_attributes_in_order", "input_dim",
                         "input_dim_latent", "target_dim", "output_dim", "parameters_trainable"});
  const CaseDataset dataset = datasets_of(json)[0];
  model::NetworkPlan plan;
  model::ModelOptions& options = plan.options;
  options.layer_norm_eps = value_or(m, "layer_norm_eps", kTorchNormEps);
  const auto activation = value_or(m, "activation", std::string("GELU (erf)"));
  const model::Activation known = activation_of({{"class", plain_name(activation)}});
  model::DatasetPlan d = dataset_plan(json, tensors, dataset);
  d.encoder = block_options(m.at("encoder"));
  d.decoder = decoder_options(m.at("decoder"), value_or(m, "decoder_target_features",
                                                        std::vector<std::string>{"encoded_data"}));
  options.processor = block_options(m.at("processor"));
  d.encoder.activation = d.decoder.activation = options.processor.activation = known;
  options.encoder = d.encoder;
  options.decoder = d.decoder;
  options.channels = value_or(m["processor"], "num_channels", d.encoder.channels);
  options.layers = value_or(m["processor"], "num_layers", int64_t{1});
  options.latent_skip = m.at("latent_skip").get<bool>();
  const Json& edges = m.at("edge_trainable");
  d.encoder_trainable = edge_trainable(m["encoder"], edges, "data2hidden");
  d.decoder_trainable = edge_trainable(m["decoder"], edges, "hidden2data");
  options.trainable_parameters.hidden_to_hidden =
      edge_trainable(m["processor"], edges, "hidden2hidden");
  plan.node_trainable = m.at("node_trainable").get<std::map<std::string, int64_t>>();
  const std::string residual =
      json.contains("residual") ? json["residual"].value("kind", std::string("skip")) : "skip";
  if (residual.starts_with("none")) {
    d.residual.kind = model::ResidualKind::kNone;
  } else if (residual.starts_with("truncated")) {
    read_truncation(tensors, graph.nodes("data").num_nodes(), d);
  } else if (!residual.starts_with("skip")) {
    throw NotSupported("residual " + residual);
  }
  add_bounding(json.at("bounding_in_order"), d);
  plan.datasets = {d};
  return plan;
}

void read_model_class(const Json& m, model::NetworkPlan& plan) {
  const Json& network = m.at("model");
  require_known_keys(network, {"class", "hidden_nodes_name", "latent_skip"});
  const std::string name = class_of(network);
  const Json& hidden = network.at("hidden_nodes_name");
  plan.meshes = hidden.is_array() ? texts(hidden) : std::vector{hidden.get<std::string>()};
  plan.options.latent_skip = value_or(network, "latent_skip", true);
  if (name == "AnemoiModelEncProcDecHierarchical") {
    plan.options.hierarchy.meshes = plan.meshes;
  } else if (name == "AnemoiEnsModelEncProcDec") {
    plan.options.ensemble.noise = model::NoiseKind::kConditioning;
  } else if (name != "AnemoiModelEncProcDec") {
    throw NotSupported("class " + name);
  }
}

void read_noise(const Json& json, const SafetensorsFile& tensors, const graph::Graph& graph,
                model::NetworkPlan& plan) {
  const Json& injector = json.at("model").at("noise_injector");
  if (class_of(injector) != "NoiseConditioning") throw NotSupported("class " + class_of(injector));
  require_known_keys(injector, {"class", "noise_std", "noise_channels_dim", "noise_mlp_hidden_dim",
                                "noise_matrix", "noise_edges_name", "edge_weight_attribute",
                                "row_normalize_noise_matrix", "autocast", "layer_kernels"});
  if (value_or(json["model"], "condition_on_residual", false)) {
    throw NotSupported("condition_on_residual");
  }
  model::EnsembleOptions& ensemble = plan.options.ensemble;
  ensemble.members = json.at("members").get<int64_t>();
  ensemble.noise_std = value_or(injector, "noise_std", 1.0);
  ensemble.noise_channels = value_or(injector, "noise_channels_dim", int64_t{4});
  ensemble.noise_hidden = value_or(injector, "noise_mlp_hidden_dim", int64_t{32});
  model::BlockOptions mlp;
  if (injector.contains("layer_kernels")) apply_kernels(injector["layer_kernels"], mlp, false);
  ensemble.noise_activation = mlp.activation;
  if (!tensors.contains("noise_projection/index")) return;
  const Json& name = injector.at("noise_edges_name");
  const std::string source = name.is_array() ? name[0].get<std::string>() : "data";
  plan.noise_projection =
      stored_matrix(tensors, "noise_projection/index", "noise_projection/value",
                    graph.nodes(plan.meshes[0]).num_nodes(), graph.nodes(source).num_nodes());
}

void read_hierarchy(const Json& m, model::NetworkPlan& plan) {
  model::HierarchyOptions& hierarchy = plan.options.hierarchy;
  hierarchy.level_processing = value_or(m, "enable_hierarchical_level_processing", false);
  hierarchy.level_layers = value_or(m, "level_process_num_layers", int64_t{1});
  hierarchy.upscale = block_options(m.at("upscale_mapper"));
  hierarchy.downscale = block_options(m.at("downscale_mapper"));
  hierarchy.upscale_trainable = value_or(m["upscale_mapper"], "trainable_size", int64_t{0});
  hierarchy.downscale_trainable = value_or(m["downscale_mapper"], "trainable_size", int64_t{0});
  // Widths double from level to level, whatever a part says.
  for (model::BlockOptions* part :
       {&hierarchy.upscale, &hierarchy.downscale, &plan.options.processor}) {
    part->channels = 0;
  }
}

// The entry of a map of encoders or decoders that serves a dataset.
std::pair<std::string, Json> mapper_for(const Json& mappers, const char* list,
                                        const std::string& dataset) {
  std::pair<std::string, Json> found;
  for (const auto& [name, entry] : mappers.items()) {
    const auto served = texts(entry.at(list));
    if (std::find(served.begin(), served.end(), dataset) == served.end()) continue;
    found = {name, entry};
  }
  if (found.first.empty()) throw NotSupported(concat("dataset '", dataset, "' without a mapper"));
  return found;
}

model::Aggregation aggregation_of(const Json& json) {
  const std::string name = class_of(json);
  if (name == "SumAggregator") return model::Aggregation::kSum;
  if (name == "MeanAggregator") return model::Aggregation::kMean;
  if (name == "ConcatAggregator") return model::Aggregation::kConcat;
  throw NotSupported("class " + name);
}

// Anemoi's own layout.
model::NetworkPlan full_plan(const Json& json, const SafetensorsFile& tensors,
                             const graph::Graph& graph) {
  const Json& m = json.at("model");
  require_known_keys(m, {"num_channels",
                         "model",
                         "condition_on_residual",
                         "noise_injector",
                         "layer_kernels",
                         "processor",
                         "encoders",
                         "latent_aggregator",
                         "decoders",
                         "residual",
                         "output_mask",
                         "node_trainable_parameters",
                         "edge_trainable_parameters",
                         "trainable_parameters",
                         "attributes",
                         "bounding",
                         "enable_hierarchical_level_processing",
                         "level_process_num_layers",
                         "upscale_mapper",
                         "downscale_mapper",
                         "sparse_projector",
                         "keep_batch_sharded",
                         "cpu_offload",
                         "compile"});
  model::NetworkPlan plan;
  model::ModelOptions& options = plan.options;
  read_model_class(m, plan);
  const bool ensemble = options.ensemble.noise != model::NoiseKind::kNone;
  options.processor = block_options(m.at("processor"), ensemble);
  options.channels = m.at("num_channels").get<int64_t>();
  options.layers = value_or(m["processor"], "num_layers", int64_t{1});
  if (m.contains("latent_aggregator")) plan.aggregation = aggregation_of(m["latent_aggregator"]);
  const Json widths = m.value("edge_trainable_parameters", Json::object());
  options.trainable_parameters.hidden_to_hidden =
      edge_trainable(m["processor"], widths, "hidden2hidden");
  plan.node_trainable = m.at("node_trainable_parameters").get<std::map<std::string, int64_t>>();
  if (ensemble) read_noise(json, tensors, graph, plan);
  if (!options.hierarchy.meshes.empty()) read_hierarchy(m, plan);
  for (const CaseDataset& dataset : datasets_of(json)) {
    model::DatasetPlan d = dataset_plan(json, tensors, dataset);
    const auto [encoder_name, encoder] = mapper_for(m.at("encoders"), "source_datasets", d.name);
    const auto [decoder_name, decoder] = mapper_for(m.at("decoders"), "target_datasets", d.name);
    d.encoder_name = encoder_name;
    d.decoder_name = decoder_name;
    d.encoder = block_options(encoder.at("mapper"));
    d.decoder = decoder_options(
        decoder.at("mapper"),
        value_or(decoder, "target_node_features", std::vector<std::string>{"encoded_data"}));
    if (!options.hierarchy.meshes.empty()) {
      d.encoder.channels = d.decoder.channels = 0;
      d.decoder.target_features = {"encoded_data"};  // what the reference does, whatever is asked
    }
    d.encoder_trainable = edge_trainable(encoder["mapper"], widths, "data2hidden");
    d.decoder_trainable = edge_trainable(decoder["mapper"], widths, "hidden2data");
    const int64_t num_nodes = graph.nodes(d.name).num_nodes();
    read_residual(m.at("residual").at("datasets").at(d.name), tensors, num_nodes, d);
    const Json& bounding = json.at("bounding_in_order");
    add_bounding(bounding.is_array() ? bounding : bounding.at(d.name), d);
    plan.datasets.push_back(std::move(d));
  }
  options.encoder = plan.datasets[0].encoder;
  options.decoder = plan.datasets[0].decoder;
  return plan;
}

}  // namespace

model::BoundingOptions bounding_options(const std::string& name, const Json& json) {
  Json bounding{{"_target_", name}};
  for (const char* key : {"variables", "min_val", "max_val", "total_var", "normalizer"})
    if (json.contains(key)) bounding[key] = json[key];
  const anemoi::Imported imported = anemoi::import_bounding_section(Json::array({bounding}));
  model::ModelOptions options;
  config::read(options, section_of(imported, "model"), "model", {});
  return options.bounding.at(0);
}

std::vector<CaseDataset> datasets_of(const Json& json) {
  const auto table = [](const Json& variables) {
    data::RoleOptions roles{texts(variables.at("forcing")), texts(variables.at("diagnostic"))};
    return data::VariableTable(texts(variables.at("dataset_variables")), roles);
  };
  const Json& variables = json.at("variables");
  if (variables.contains("dataset_variables")) return {{"data", "", table(variables)}};
  std::vector<CaseDataset> datasets;
  for (const auto& [name, entry] : variables.items())
    datasets.push_back({name, name + "/", table(entry)});
  return datasets;
}

data::Statistics statistics_of(const SafetensorsFile& tensors, const std::string& prefix) {
  const auto read = [&](const char* name) {
    return tensors.contains(prefix + name) ? tensors.doubles(prefix + name) : std::vector<double>();
  };
  return {read("mean"), read("stdev"), read("minimum"), read("maximum")};
}

std::vector<std::string> edge_attributes_of(const Json& json) {
  const Json& m = json.at("model");
  if (m.contains("edge_attributes_in_order")) return texts(m["edge_attributes_in_order"]);
  return texts(m.at("attributes").at("edges"));
}

model::NetworkPlan network_plan(const Json& json, const SafetensorsFile& tensors,
                                const graph::Graph& graph) {
  return json.at("model").contains("encoders") ? full_plan(json, tensors, graph)
                                               : simple_plan(json, tensors, graph);
}

}  // namespace aifs::conformance
