// SPDX-License-Identifier: Apache-2.0
#include "app/exchange.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>

#include "app/run/graph_tensors.h"
#include "app/run/make_data.h"
#include "app/run/network_plan.h"
#include "app/run/versions.h"
#include "core/check.h"
#include "core/file_io.h"
#include "core/log.h"
#include "core/safetensors.h"
#include "core/time.h"
#include "graph/graph_file.h"
#include "graph/stored_graph.h"

namespace aifs::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormatVersion = 1;
constexpr const char* kModel = "model.safetensors";
constexpr const char* kGraph = "graph.safetensors";
constexpr const char* kTruncation = "truncation.safetensors";
constexpr const char* kMetadata = "metadata.json";
constexpr const char* kConfig = "config.json";
constexpr const char* kNetwork = "model.";  // of the interface
constexpr const char* kNormaliser = ".data.processors.normalizer.";
constexpr const char* kAreaWeight = "area_weight";
constexpr const char* kNotWritten = "tools/anemoi_checkpoint.py would make another model of it";
// Anemoi's modules of a network, in its order.
constexpr std::array kModules{"node_attributes",
                              "encoder_graph_provider",
                              "encoder",
                              "down_level_processor",
                              "down_level_processor_graph_providers",
                              "up_level_processor",
                              "up_level_processor_graph_providers",
                              "processor_graph_provider",
                              "processor",
                              "upscale",
                              "upscale_graph_providers",
                              "downscale",
                              "downscale_graph_providers",
                              "decoder_graph_provider",
                              "decoder",
                              "noise_injector",
                              "residual",
                              "boundings"};
// Lists what a module registers after everything else, in this order.
constexpr std::array kRegisteredLast{"muzero",
                                     "trainable_tensors",
                                     "attention",
                                     "mlp.mlp",
                                     "layer_norm_attention_src",
                                     "layer_norm_attention_dst",
                                     "layer_norm_attention_dest",
                                     "layer_norm_mpl"};

// The names of a network in the order of Anemoi's state dict.
std::vector<std::string> state_dict_order(const model::ParameterSet& parameters) {
  std::vector<std::string> names;
  for (const model::Parameter& parameter : parameters.entries())
    names.push_back(parameter.name);
  std::ranges::stable_sort(names, {}, [](const std::string& name) {
    const std::string_view module = std::string_view(name).substr(0, name.find('.'));
    return std::ranges::find(kModules, module) - kModules.begin();
  });
  for (const char* part : kRegisteredLast) {
    const auto position = [&](const std::string& name) {
      return concat(".", name, ".").find(concat(".", part, "."));
    };
    for (auto name = names.begin(); name != names.end(); ++name) {
      const size_t at = position(*name);
      if (at == std::string::npos) continue;
      const std::string module = name->substr(0, at);
      const auto end = std::find_if_not(
          name, names.end(), [&](const std::string& other) { return other.starts_with(module); });
      std::stable_partition(name, end, [&](const std::string& other) {
        return position(other) == std::string::npos;
      });
      name = end - 1;
    }
  }
  return names;
}

// The tables of the normaliser under their names in Anemoi, where pre- and post-processors share
// them.
class NormaliserTensors {
 public:
  explicit NormaliserTensors(const DataParts& data)
      : normaliser_(data.training_source.normaliser),
        inputs_(data.variables.input_columns().begin(), data.variables.input_columns().end()),
        outputs_(data.variables.output_columns().begin(), data.variables.output_columns().end()) {}

  std::vector<SafetensorsItem> items() const {
    std::vector<SafetensorsItem> items;
    for (const char* stage : {"pre_processors", "post_processors"}) {
      const std::string prefix = concat(stage, kNormaliser);
      const auto add = [&](const char* name, DType dtype, const auto& values) {
        items.push_back(
            {prefix + name, dtype, {static_cast<int64_t>(values.size())}, values.data()});
      };
      add("_norm_mul", DType::kF32, normaliser_.mul);
      add("_norm_add", DType::kF32, normaliser_.add);
      add("_input_idx", DType::kI32, inputs_);
      add("_output_idx", DType::kI32, outputs_);
      add("_model_output_idx", DType::kI32, outputs_);
    }
    return items;
  }

 private:
  const data::Normaliser& normaliser_;
  std::vector<int32_t> inputs_, outputs_;
};

Json statistics_of(const data::Statistics& statistics) {
  return Json{{"mean", statistics.mean},
              {"stdev", statistics.stdev},
              {"minimum", statistics.minimum},
              {"maximum", statistics.maximum}};
}

// Returns what of the dataset's own attributes programs that forecast want to know.
Json dataset_attributes(const data::Dataset& dataset) {
  Json kept = Json::object();
  const Json all = dataset.attributes();
  for (const char* name : {"resolution", "field_shape", "variables_metadata", "data_request",
                           "description", "licence", "attribution", "uuid", "version"}) {
    if (all.contains(name)) kept[name] = all.at(name);
  }
  return kept;
}

Json metadata_of(const Run& run, const train::CheckpointInfo& checkpoint) {
  const DataParts& data = run.data();
  const data::DatasetInfo& info = data.training->info();
  const RunConfig& config = run.config();
  Json json{{"format", "aifs-train exchange"},
            {"format_version", kFormatVersion},
            {"program_version", program_version()},
            {"step", checkpoint.state.step},
            {"epoch", checkpoint.state.epoch},
            {"graph_hash", run.graph().hash},
            {"variables", info.variables},
            {"forcing", config.data.roles.forcing},
            {"diagnostic", config.data.roles.diagnostic},
            {"statistics", statistics_of(data.record.statistics())},
            {"timestep", format_duration(data.timestep_s)},
            {"times_in", data.window.times_in},
            {"times_out", data.window.times_out},
            {"frequency", format_duration(info.frequency_s)},
            {"start_date", format_date(info.dates_s.front())},
            {"end_date", format_date(info.dates_s.back())},
            {"num_dates", info.num_rows()},
            {"num_nodes", info.num_nodes()},
            {"latitudes", info.latitudes_deg},
            {"longitudes", info.longitudes_deg},
            {"attributes", dataset_attributes(*data.training)}};
  if (const at::Tensor& mask = run.output_mask(); mask.defined()) {
    const bool* decided = mask.const_data_ptr<bool>();
    json["output_mask"] = std::vector<bool>(decided, decided + mask.numel());
  }
  return json;
}

// The matrices of a truncated residual, entries in any order.
void write_truncation(const fs::path& path, const model::ResidualOptions& residual,
                      const graph::Graph& graph) {
  const auto nodes = model::GraphTensors::create(graph, {}, at::kFloat);
  const model::Truncation truncation =
      model::truncation_of(residual, nodes.latlon_rad("data"), "model.residual");
  std::vector<SafetensorsItem> items;
  const auto add = [&](const std::string& way, const model::SparseMatrix& matrix) {
    const model::EdgeIndex& index = *matrix.index;
    items.push_back({way + "/row", DType::kI32, {index.num_edges}, index.target.const_data_ptr()});
    items.push_back(
        {way + "/column", DType::kI32, {index.num_edges}, index.source.const_data_ptr()});
    items.push_back(
        {way + "/value", DType::kF32, {index.num_edges}, matrix.values.const_data_ptr()});
  };
  add("down", truncation.down);
  add("up", truncation.up);
  write_safetensors(path, items);
}

void refuse_several_datasets(const RunConfig& config) {
  require_one_dataset(config, "models of several datasets cannot be exchanged yet",
                      "name a single dataset in data.dataset");
}

// Throws ConfigError for a part whose edges have `features` learnt features, or norms a constant,
// of its own: tools/anemoi_checkpoint.py writes those of the model, `usual` and `eps`.
void refuse_own_options(const model::BlockOptions& block, const std::string& path, int64_t usual,
                        double eps) {
  const auto refuse = [&](const char* key, const auto& own, const auto& of_model) {
    if (own == of_model) return;
    throw ConfigError(concat(path, ".", key),
                      concat("is ", own, ", and exported models have the model's ", of_model),
                      kNotWritten);
  };
  const double norm_eps = block.norm_eps.value_or(eps);
  refuse("norm_eps", norm_eps, eps);
  refuse("qk_norm_eps", block.qk_norm_eps.value_or(norm_eps), eps);
  refuse("trainable", block.trainable.value_or(usual), usual);
}

// Throws ConfigError for options of a model that tools/anemoi_checkpoint.py does not write.
void refuse_not_written(const model::ModelOptions& model) {
  const auto refuse = [](bool is_set, const std::string& key) {
    if (is_set) throw ConfigError("model." + key, "cannot be exported to Anemoi yet", kNotWritten);
  };
  const model::EnsembleOptions& ensemble = model.ensemble;
  refuse(!ensemble.noise_nodes.empty(), "ensemble.noise_nodes");
  refuse(!ensemble.noise_weights.empty(), "ensemble.noise_weights");
  refuse(!ensemble.noise_matrix.empty(), "ensemble.noise_matrix");
  refuse(ensemble.noise_normalised, "ensemble.noise_normalised");
  refuse(!model.encoders.empty(), "encoders");
  refuse(!model.decoders.empty(), "decoders");
  refuse(!model.residuals.empty(), "residuals");
  const model::TrainableOptions& trainable = model.trainable_parameters;
  refuse(!trainable.nodes.empty(), "trainable_parameters.nodes");
  const double eps = model.layer_norm_eps;
  refuse_own_options(model.encoder, "model.encoder", trainable.data_to_hidden, eps);
  refuse_own_options(model.processor, "model.processor", trainable.hidden_to_hidden, eps);
  refuse_own_options(model.decoder, "model.decoder", trainable.hidden_to_data, eps);
  const model::HierarchyOptions& hierarchy = model.hierarchy;
  if (hierarchy.meshes.empty()) return;
  refuse_own_options(hierarchy.upscale, "model.hierarchy.upscale", hierarchy.upscale_trainable,
                     eps);
  refuse_own_options(hierarchy.downscale, "model.hierarchy.downscale",
                     hierarchy.downscale_trainable, eps);
}

void refuse_full(const fs::path& folder) {
  std::error_code error;
  if (!path_exists(folder) || fs::is_empty(folder, error)) return;
  throw ConfigError("", concat("'", folder.string(), "' is there already"),
                    "name a new folder, or remove this one");
}

// Weights that were trained on other normalised values are of no use.
void check_normaliser(const NamedTensors& file, const DataParts& data) {
  const NormaliserTensors own(data);
  const std::vector<std::string>& variables = data.variables.names();
  for (const SafetensorsItem& item : own.items()) {
    if (item.dtype != DType::kF32) continue;
    if (!file.contains(item.name)) {
      // Earlier releases have only factors and offsets.
      if (item.name.ends_with("_norm_mul") || item.name.ends_with("_norm_add"))
        log::warning("'", file.path().string(), "' has no '", item.name, "': whether it is ",
                     "normalised as this configuration says is not known");
      continue;
    }
    const auto* values = static_cast<const float*>(item.data);
    const std::vector<double> theirs = file.doubles(item.name);
    for (size_t i = 0; i < variables.size(); ++i) {
      if (i < theirs.size() && static_cast<float>(theirs[i]) == values[i]) continue;
      throw ConfigError(
          "data.normalizer",
          concat("'", item.name, "' of '", file.path().string(),
                 "' is not what this configuration and dataset give for '", variables[i], "'"),
          "the variables, their methods and statistics must be those of the model");
    }
  }
}

// The graph of the model, with the weights of cells, which its writer may have left out.
graph::Graph read_graph(const RunConfig& config, const NamedTensors& tensors,
                        const parallel::ProcessMesh& mesh) {
  graph::Graph graph = read_graph_tensors(tensors);
  for (graph::NodeSet& nodes : graph.node_sets) {
    const bool has_weights = nodes.name != "data" || nodes.attributes.count(kAreaWeight) != 0;
    if (has_weights || config.graph.given) continue;
    const Run built(config, mesh, at::kCPU);
    nodes.attributes[kAreaWeight] =
        built.graph().graph.nodes(nodes.name).attributes.at(kAreaWeight);
  }
  return graph;
}

// A run folder that becomes what it was unless it is finished.
class UnfinishedRun {
 public:
  explicit UnfinishedRun(fs::path folder)
      : folder_(std::move(folder)), was_there_(path_exists(folder_)) {}
  ~UnfinishedRun() {
    if (finished_) return;
    std::error_code ignored;
    if (!was_there_) fs::remove_all(folder_, ignored);
    for (const char* part : {"graph.nc", kConfig, "checkpoints"})
      fs::remove_all(folder_ / part, ignored);
  }
  UnfinishedRun(const UnfinishedRun&) = delete;
  UnfinishedRun& operator=(const UnfinishedRun&) = delete;
  void finish() { finished_ = true; }

 private:
  fs::path folder_;
  bool was_there_, finished_ = false;
};

// The weights, and limits that are made of statistics, which releases of Anemoi up to 0.6 did not
// save: those of this run. The result refers to both.
NamedTensors with_limits(const NamedTensors& weights, const model::ParameterSet& parameters) {
  NamedTensors all = weights;
  for (const model::Parameter& parameter : parameters.entries()) {
    const std::string name = kNetwork + parameter.name;
    if (all.contains(name) || !name.ends_with(".norm_min_val")) continue;
    const at::Tensor& limits = parameter.tensor;
    const auto* values = limits.const_data_ptr<float>();
    const auto bytes = std::as_bytes(std::span(values, static_cast<size_t>(limits.numel())));
    all.add(name, {DType::kF32, limits.sizes().vec(), bytes});
  }
  return all;
}

// The moments of a training by the names of the parameters that they belong to: those that are
// trained, in the order of the state dict. `zeros` are those of parameters that never had a
// gradient.
void add_moments(const anemoi::SavedTraining& training, const NamedTensors& weights,
                 const model::ParameterSet& parameters, std::vector<float>& zeros,
                 NamedTensors& moments) {
  std::vector<const model::Parameter*> trained;
  size_t largest = 0;
  for (const std::string& name : weights.names()) {
    if (!name.starts_with(kNetwork)) continue;
    const std::string own = name.substr(std::string_view(kNetwork).size());
    if (!parameters.contains(own) || !parameters.at(own).is_optimised()) continue;
    trained.push_back(&parameters.at(own));
    largest = std::max(largest, static_cast<size_t>(weights.at(name).num_elements()));
  }
  if (trained.size() != training.moments.size()) {
    throw DataError(
        concat("'", weights.path().string(), "' has moments of ", training.moments.size(),
               " parameters, and this model trains ", trained.size()),
        "--weights-only begins a new training; so does init.from with the run that it makes");
  }
  zeros.assign(largest, 0.0f);
  for (size_t i = 0; i < trained.size(); ++i) {
    const std::string& name = trained[i]->name;
    const TensorEntry& weight = weights.at(kNetwork + name);
    const auto bytes = std::as_bytes(std::span(zeros))
                           .first(static_cast<size_t>(weight.num_elements()) * sizeof(float));
    const TensorEntry none{.dtype = DType::kF32, .shape = weight.shape, .bytes = bytes};
    const auto& [first, second] = training.moments[i];
    moments.add("moment1/" + name, first.bytes.empty() ? none : first);
    moments.add("moment2/" + name, second.bytes.empty() ? none : second);
  }
}

}  // namespace

void export_model(Run& run, const train::CheckpointInfo& checkpoint, const fs::path& folder) {
  refuse_several_datasets(run.config());
  refuse_not_written(run.config().model);
  refuse_full(folder);
  run.load_weights(checkpoint);
  make_directories(folder);
  const NormaliserTensors normaliser(run.data());
  train::write_parameters(folder / kModel, run.parameters(), state_dict_order(run.parameters()),
                          kNetwork, normaliser.items());
  write_graph_tensors(folder / kGraph, run.graph().graph);
  const model::ResidualOptions& residual = run.config().model.residual;
  if (residual.kind == model::ResidualKind::kTruncated)
    write_truncation(folder / kTruncation, residual, run.graph().graph);
  write_file_atomic(folder / kMetadata, metadata_of(run, checkpoint).dump(1) + "\n");
  RunConfig config = run.config();
  write_file_atomic(folder / kConfig, effective_json(config));
}

fs::path import_model(RunConfig config, const OtherModel& model,
                      const parallel::ProcessMesh& mesh) {
  refuse_several_datasets(config);
  const fs::path run_dir = config.run.dir;
  refuse_full(run_dir);
  UnfinishedRun unfinished(run_dir);
  config.init = {};
  config.optimizer.lora = {};  // the weights hold what adapters have added
  config.graph.file = "";
  const graph::Graph graph = read_graph(config, model.graph, mesh);
  config.graph.file = absolute_path(run_dir / "graph.nc").string();
  config.graph.cache = "";
  make_directories(run_dir);
  const std::vector<DataParts> parts = make_datasets(config, open_stores(config));
  graph::save_graph(config.graph.file, graph,
                    graph::build_hash(config.graph, DataCells(parts).named()));
  Run run(config, mesh, at::kCPU);
  run.build();
  const NamedTensors weights = with_limits(model.weights, run.parameters());
  check_normaliser(weights, run.data());
  OtherTraining training;
  NamedTensors moments(weights.path());
  std::vector<float> zeros;
  if (model.training) {
    training.state = {.step = model.training->step,
                      .epoch = model.training->epoch,
                      .batch_in_epoch = model.training->batch_in_epoch};
    training.optimizer_steps = model.training->optimizer_steps;
    add_moments(*model.training, weights, run.parameters(), zeros, moments);
    training.moments = &moments;
  }
  const fs::path checkpoint = run.adopt_weights(weights, kNetwork, training);
  write_file_atomic(run_dir / kConfig, effective_json(config));
  unfinished.finish();
  return checkpoint;
}

fs::path import_folder(RunConfig config, const fs::path& folder,
                       const parallel::ProcessMesh& mesh) {
  const SafetensorsFile weights(folder / kModel), graph(folder / kGraph);
  return import_model(std::move(config), {.weights = weights, .graph = graph}, mesh);
}

}  // namespace aifs::app
