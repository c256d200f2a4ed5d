// SPDX-License-Identifier: Apache-2.0
#include "app/wiring.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/signals.h"
#include "app/versions.h"
#include "core/check.h"
#include "core/log.h"
#include "core/rng.h"
#include "core/time.h"
#include "core/version.h"
#include "data/analytic_dataset.h"
#include "data/anemoi_dataset.h"
#include "graph/builder.h"
#include "graph/gaussian_grid.h"

namespace aifs::app {

namespace {

// Cells of the graph and of the dataset must be the same points, up to rounding of the file.
constexpr double kSamePoint_deg = 1e-3;

std::shared_ptr<const data::Dataset> open_anemoi(const RunConfig& config,
                                                 const data::Period& period) {
  data::DatasetOptions options = config.data.dataset;
  if (!period.start.empty()) options.start = period.start;
  if (!period.end.empty()) options.end = period.end;
  return std::make_shared<data::AnemoiDataset>(options);
}

std::shared_ptr<const data::Dataset> make_analytic(const RunConfig& config,
                                                   const data::Period& period) {
  const graph::Coordinates grid =
      graph::gaussian_coordinates(graph::parse_gaussian_grid(config.graph.grid));
  data::AnalyticOptions options = config.data.analytic;
  if (!period.start.empty()) options.start = period.start;
  if (!period.end.empty()) options.end = period.end;
  options.statistics_end = "";  // statistics are those of the period itself
  return std::make_shared<data::AnalyticDataset>(options, grid.lat_deg, grid.lon_deg);
}

std::shared_ptr<const data::Dataset> open_dataset(const RunConfig& config,
                                                  const data::Period& period) {
  return config.data.kind == data::SourceKind::kAnemoi ? open_anemoi(config, period)
                                                       : make_analytic(config, period);
}

// Rows of the dataset per time step of the model.
int64_t rows_per_timestep(const data::DatasetInfo& info, int64_t timestep_s) {
  if (timestep_s % info.frequency_s != 0) {
    throw ConfigError("data.timestep", concat(format_duration(timestep_s),
                                              " is not a multiple of the frequency of '", info.name,
                                              "', ", format_duration(info.frequency_s)));
  }
  return timestep_s / info.frequency_s;
}

void check_alike(const data::DatasetInfo& training, const data::DatasetInfo& validation) {
  if (training.variables != validation.variables ||
      training.num_nodes() != validation.num_nodes() ||
      training.ensemble_size != validation.ensemble_size) {
    throw DataError(concat("'", training.name, "' and '", validation.name,
                           "' differ in variables, cells or members"));
  }
}

DataParts make_data(const RunConfig& config) {
  DataParts parts;
  parts.training = open_dataset(config, config.data.training);
  parts.validation = open_dataset(config, config.data.validation);
  const data::DatasetInfo& info = parts.training->info();
  check_alike(info, parts.validation->info());
  if (info.ensemble_size != 1) {
    throw ConfigError("data.dataset", concat("'", info.name, "' has ", info.ensemble_size,
                                             " members, this network takes one"));
  }
  parts.variables = data::VariableTable(info.variables, config.data.roles);
  parts.statistics = info.statistics;
  const data::Imputer imputer(info.variables, parts.statistics, config.data.imputer);
  const data::Normaliser normaliser =
      data::Normaliser::create(info.variables, parts.statistics, config.data.normalizer);
  const data::Remapper remapper(info.variables, config.data.remapper);
  parts.training_source = {parts.training, normaliser, imputer, remapper};
  parts.validation_source = {parts.validation, normaliser, imputer, remapper};
  parts.timestep_s = parse_duration(config.data.timestep);
  parts.window = {config.data.multistep_input, config.data.multistep_output,
                  rows_per_timestep(info, parts.timestep_s)};
  return parts;
}

void check_same_grid(const graph::NodeSet& nodes, const data::DatasetInfo& info) {
  constexpr double kDegrees = 57.29577951308232;
  const auto mismatch = [&](const std::string& what) {
    return ConfigError("graph.grid", concat("the graph and '", info.name, "' differ: ", what),
                       "use \"dataset\", or the grid that the dataset is on");
  };
  if (nodes.num_nodes() != info.num_nodes()) {
    throw mismatch(concat(nodes.num_nodes(), " nodes and ", info.num_nodes(), " cells"));
  }
  for (size_t i = 0; i < nodes.lat_rad.size(); ++i) {
    const double lat = nodes.lat_rad[i] * kDegrees, lon = nodes.lon_rad[i] * kDegrees;
    const double lon_apart = std::remainder(lon - info.longitudes_deg[i], 360.0);
    if (std::abs(lat - info.latitudes_deg[i]) > kSamePoint_deg ||
        std::abs(lon_apart) * std::cos(nodes.lat_rad[i]) > kSamePoint_deg) {
      throw mismatch(concat("node ", i, " is at ", lat, " N ", lon, " E, the cell at ",
                            info.latitudes_deg[i], " N ", info.longitudes_deg[i], " E"));
    }
  }
}

GraphParts make_graph(const RunConfig& config, const data::DatasetInfo& info) {
  const auto start = std::chrono::steady_clock::now();
  GraphParts parts;
  const graph::Coordinates cells{info.latitudes_deg, info.longitudes_deg};
  parts.graph = graph::load_or_build_graph(config.graph, cells, &parts.report);
  check_same_grid(parts.graph.nodes("data"), info);
  parts.hash = parts.graph.content_hash();
  parts.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const std::string& warning : parts.report.warnings)
    log::warning("graph: ", warning);
  return parts;
}

model::FieldLayout field_layout(const DataParts& data) {
  model::FieldLayout layout;
  layout.times_in = data.window.times_in;
  layout.times_out = data.window.times_out;
  layout.num_inputs = data.variables.num_inputs();
  layout.input_prognostic = data.variables.input_prognostic();
  layout.output_prognostic = data.variables.output_prognostic();
  layout.outputs.names = data.variables.output_names();
  for (const int64_t column : data.variables.output_columns()) {
    layout.outputs.mean.push_back(data.statistics.mean[static_cast<size_t>(column)]);
    layout.outputs.stdev.push_back(data.statistics.stdev[static_cast<size_t>(column)]);
  }
  return layout;
}

at::ScalarType scalar_type(train::Precision precision) {
  return precision == train::Precision::kFp64 ? at::kDouble : at::kFloat;
}

// Weights of the cells in validation scores.
std::vector<float> cell_weights(train::GridWeights kind, const graph::NodeSet& nodes) {
  if (kind == train::GridWeights::kArea) return nodes.attributes.at("area_weight").values;
  std::vector<float> weights(nodes.lat_rad.size(), 1.0f);
  if (kind == train::GridWeights::kCosLatitude) {
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = std::cos(nodes.lat_rad[i]);
  }
  return weights;
}

}  // namespace

Run::Run(RunConfig config) : config_(std::move(config)) {
  if (config_.run.threads > 0) at::set_num_threads(static_cast<int>(config_.run.threads));
  data_ = make_data(config_);
  graph_ = make_graph(config_, data_.training->info());
  const at::ScalarType dtype = scalar_type(config_.train.precision);
  const auto tensors =
      model::GraphTensors::create(graph_.graph, config_.model.edge_attributes, dtype);
  const uint32_t seed = derive_seed(static_cast<uint64_t>(config_.run.seed), SeedContext::kTrainer);
  parameters_ = std::make_unique<model::ParameterSet>(dtype, seed);
  network_ = std::make_unique<model::EncoderProcessorDecoder>(*parameters_, config_.model, tensors,
                                                              field_layout(data_));
  parameters_->flatten(at::kCPU);
  loss_ = make_loss();
  validation_ = make_validation();
}

fs::path checkpoint_folder(const RunConfig& config) {
  return fs::path(config.run.dir) / "checkpoints";
}

train::LossPtr Run::make_loss() const {
  return train::build_loss(config_.loss, {.variables = data_.variables,
                                          .statistics = data_.statistics,
                                          .tendencies = data_.training->info().tendencies,
                                          .nodes = graph_.graph.nodes("data"),
                                          .grid_name = config_.graph.grid,
                                          .timestep_s = data_.timestep_s,
                                          .times_out = data_.window.times_out,
                                          .dtype = parameters_->dtype()});
}

std::unique_ptr<train::Validation> Run::make_validation() const {
  const train::ValidationSetup setup{
      .source = data_.validation_source,
      .variables = data_.variables,
      .window = data_.window,
      .timestep_s = data_.timestep_s,
      .cell_weights = cell_weights(config_.train.validation.weights, graph_.graph.nodes("data")),
      .post_processor = {data_.variables.output_names(), config_.data.postprocessor},
      .nodes = {0, data_.validation->info().num_nodes()},
      .threads = config_.data.threads,
      .prefetch_batches = config_.data.prefetch_batches,
      .dtype = parameters_->dtype()};
  return std::make_unique<train::Validation>(config_.train.validation, setup);
}

train::CheckpointMeta Run::checkpoint_meta() {
  return {.program_version = concat(kVersion, " (", kCommit, ")"),
          .torch_version = torch_version(),
          .config_json = effective_json(config_),
          .config_hash = config_hash(config_),
          .graph_hash = graph_.hash,
          .time_utc = ""};
}

train::Outcome Run::train(const std::optional<train::CheckpointInfo>& resume_from) {
  const train::TrainerParts parts{
      .source = data_.training_source,
      .variables = data_.variables,
      .window = data_.window,
      .sampling = {.seed = static_cast<uint64_t>(config_.run.seed),
                   .shuffle = true,
                   .batch_size = config_.data.batch_size,
                   .num_groups = 1,
                   .group = 0,
                   .workers = config_.data.anemoi_workers,
                   .reseed_every_epoch = config_.train.rollout.epoch_increment > 0},
      .loading = {.nodes = {0, data_.training->info().num_nodes()},
                  .threads = config_.data.threads,
                  .prefetch_batches = config_.data.prefetch_batches},
      .parameters = *parameters_,
      .network = *network_,
      .loss = loss_,
      .validation = validation_.get()};
  const train::TrainerOptions options{.train = config_.train,
                                      .optimizer = config_.optimizer,
                                      .loss = config_.loss,
                                      .checkpoint = config_.checkpoint,
                                      .log = config_.log,
                                      .profile = config_.profile,
                                      .run_dir = config_.run.dir,
                                      .checkpoint_meta = checkpoint_meta(),
                                      .should_stop = stop_requested};
  if (!resume_from && !config_.init.from.empty()) {
    const train::CheckpointInfo other = train::inspect_checkpoint(config_.init.from);
    for (const std::string& skipped :
         train::init_parameters(other, *parameters_, config_.init.may_skip)) {
      log::warning("init: ", skipped, "; it keeps its first value");
    }
    log::info("starting from the weights of '", other.path.string(), "'");
  }
  train::Trainer trainer(options, parts);
  if (resume_from) {
    trainer.resume(*resume_from);
    if (resume_from->meta.graph_hash != graph_.hash) {
      throw DataError(concat("checkpoint '", resume_from->path.string(),
                             "' was trained on another graph than this configuration gives"),
                      "restore the options of section graph, or the graph file");
    }
    if (resume_from->meta.config_hash != options.checkpoint_meta.config_hash) {
      log::warning("the configuration differs from the one of checkpoint '",
                   resume_from->path.string(), "' in what determines the numbers of the run");
    }
    log::info("resuming at step ", resume_from->state.step, " from '", resume_from->path.string(),
              "'");
  }
  return trainer.run();
}

void Run::validate(const train::CheckpointInfo& checkpoint) {
  train::load_parameters(checkpoint, *parameters_);
  if (config_.optimizer.average.kind != train::AverageKind::kNone) {
    train::load_average(checkpoint, *parameters_);
  }
  const train::Forecaster forecaster(*network_, data_.variables, data_.window, at::kCPU);
  const train::ValidationResult result = validation_->run(forecaster, *loss_);
  nlohmann::ordered_json json{{"step", checkpoint.state.step}, {"epoch", checkpoint.state.epoch}};
  json.update(train::to_json(result, data_.variables));
  const fs::path path =
      fs::path(config_.run.dir) / concat("validation-step-", checkpoint.state.step, ".json");
  make_directories(config_.run.dir);
  write_file_atomic(path, json.dump(2) + "\n");
  std::printf("%s\n", train::to_table(result, data_.variables).c_str());
  log::info("loss ", result.loss, " over ", result.num_dates, " dates; figures in '", path.string(),
            "'");
}

std::string check_config(const RunConfig& config) {
  const bool here =
      config.data.kind == data::SourceKind::kAnalytic || fs::exists(config.data.dataset.dataset);
  if (!here) {
    return concat("'", config.data.dataset.dataset,
                  "' is not on this machine: names and periods were not checked");
  }
  const DataParts data = make_data(config);
  graph::NodeSet nodes;  // of the dataset; what is at them is not looked at
  nodes.lat_rad.resize(static_cast<size_t>(data.training->info().num_nodes()));
  train::check_loss(config.loss, {.variables = data.variables,
                                  .statistics = data.statistics,
                                  .tendencies = data.training->info().tendencies,
                                  .nodes = nodes,
                                  .grid_name = config.graph.grid,
                                  .timestep_s = data.timestep_s,
                                  .times_out = data.window.times_out});
  const data::PostProcessor post(data.variables.output_names(), config.data.postprocessor);
  const model::FieldLayout layout = field_layout(data);
  model::ParameterSet scratch(at::kFloat, 0);
  for (size_t i = 0; i < config.model.bounding.size(); ++i) {
    model::Bounding(model::ParameterScope(scratch, std::to_string(i)), config.model.bounding[i],
                    layout.outputs, concat("model.bounding.", i));
  }
  return concat(data.training->info().num_rows(), " training and ",
                data.validation->info().num_rows(), " validation dates, ",
                data.variables.num_inputs(), " variables in, ", data.variables.num_outputs(),
                " out");
}

}  // namespace aifs::app
