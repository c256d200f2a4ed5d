// SPDX-License-Identifier: Apache-2.0
#include "app/check_config.h"

#include <ATen/ATen.h>

#include "app/run/checkpoints.h"
#include "app/run/data_match.h"
#include "app/run/device.h"
#include "app/run/make_data.h"
#include "app/run/model_graph.h"
#include "app/run/period_overlap.h"
#include "app/run/validation_parts.h"
#include "app/run/weights_match.h"
#include "app/run/wiring.h"
#include "core/check.h"
#include "core/file_kind.h"
#include "data/sources/netcdf_dataset.h"
#include "graph/builder.h"
#include "graph/graph_file.h"
#include "graph/stored_graph.h"
#include "model/nodes/matrix_file.h"
#include "train/epoch_requests.h"
#include "train/optim/adapters.h"

namespace aifs::app {

namespace {

at::Tensor coordinates_of(const data::DatasetInfo& info) {
  const auto radians = [](const std::vector<double>& degrees) {
    return at::deg2rad(at::tensor(degrees, at::kDouble)).to(at::kFloat);
  };
  return at::stack({radians(info.latitudes_deg), radians(info.longitudes_deg)}, 1);
}

class Checks {
 public:
  Checks(const RunConfig& config, const CheckRequest& request)
      : config_(config), request_(request) {}

  CheckReport run() {
    check_run_folder();
    find_weights();
    open_data();
    check_graph();
    check_noise_matrix();
    compare_weights();
    check_ranks();
    return std::move(report_);
  }

 private:
  template <class... Args>
  void note(const Args&... args) {
    report_.checked.push_back(concat(args...));
  }

  // True if a file or folder that `key` names is to be looked at; says so if it is not.
  bool is_here(const std::string& key, const std::string& path, const std::string& what) {
    const bool here = request_.files && path_exists(path);
    if (!here) {
      report_.not_here.push_back(concat(
          what, " '", path, "' (", key, ")",
          request_.files ? concat(" is not on this machine", dangling_link_text(path)) : ""));
    }
    return here;
  }

  // Patterns must stand for something.
  bool netcdf_is_here(const data::DatasetTree& dataset) {
    const std::string key = dataset.path_of("netcdf");
    bool all = true;
    for (const std::string& name : dataset.netcdf.files) {
      if (name.find_first_of("*?[") == std::string::npos) {
        all = is_here(key, name, "the file") && all;
      } else if (request_.files) {
        data::netcdf_files({name}, key);
      } else {
        report_.not_here.push_back(concat("the files '", name, "' (", key, ")"));
        all = false;
      }
    }
    return all;
  }

  bool is_here(const data::DatasetTree& dataset) {
    bool all = netcdf_is_here(dataset);
    for (const std::string& name : data::store_names(dataset))
      all = is_here(dataset.path_of("dataset"), name, "the dataset") && all;
    return all;
  }

  void check_run_folder();
  void open_data();
  void check_data() const;
  void check_dataset(const DataParts& data, const model::DatasetPlan& plan) const;
  void check_loss(const DataParts& data, const at::Tensor& output_mask = {}) const;
  train::FurtherValidation validation_of(const DataParts& data) const;
  void check_graph();
  void check_masks(const graph::Graph& graph) const;
  void check_noise_matrix();
  void find_weights();
  void compare_weights();
  void check_ranks();
  void take(const train::CheckpointInfo& found, WeightUse use) {
    checkpoint_ = found;
    saved_ = saved_data(use, found);
  }

  const RunConfig& config_;
  const CheckRequest& request_;
  CheckReport report_;
  std::optional<train::CheckpointInfo> checkpoint_;  // whose weights are wanted
  std::optional<SavedData> saved_;                   // of it
  std::optional<std::vector<DataParts>> data_;       // none: not on this machine
  int64_t num_hidden_ = -1;                          // nodes of the first mesh; -1: no graph
};

void Checks::check_run_folder() {
  const fs::path folder = config_.run.dir;
  const std::string link = dangling_link_text(folder);
  if (!link.empty()) throw ConfigError("run.dir", concat("'", folder.string(), "'", link));
  if (path_exists(folder) && !folder_exists(folder)) {
    throw ConfigError("run.dir", concat("'", folder.string(), "' is ",
                                        describe_kind_of_file(folder), ", not a folder"));
  }
  switch (request_.use) {
    case CheckRequest::Use::kTrain:
      refuse_to_overwrite(config_);
      note("run folder: '", folder.string(), "' has no checkpoints yet");
      break;
    case CheckRequest::Use::kResume:
      if (const auto found = checkpoint_to_resume(config_, request_.checkpoint)) {
        take(*found, WeightUse::kResume);
        note("checkpoint: '", found->path.string(), "' is sound");
      }
      break;
    case CheckRequest::Use::kValidate: {
      const auto found = checkpoint_to_validate(config_, request_.checkpoint);
      take(found, WeightUse::kScore);
      note("checkpoint: '", found.path.string(), "' is sound");
      break;
    }
  }
}

void Checks::open_data() {
  bool are_here = true;
  if (config_.data.kind == data::SourceKind::kAnemoi) {
    for (size_t d = 0; d < config_.data.names().size(); ++d)
      are_here = is_here(config_.data.of_dataset(d).dataset) && are_here;
  }
  if (!are_here) return;
  data_ = make_datasets(config_, open_stores(config_), saved_ ? &*saved_ : nullptr);
  for (const std::string& warning : warnings_of(*data_))
    report_.warnings.push_back(warning);
  check_data();
  const DataParts& first = data_->front();
  for (const DataParts& data : *data_) {
    note("data", data_->size() > 1 ? concat(" '", data.name, "'") : "", ": ",
         data.training->info().num_rows(), " training and ", data.validation->info().num_rows(),
         " validation dates, ", data.variables.num_inputs(), " variables in, ",
         data.variables.num_outputs(), " out");
  }
  if (!config_.train.validation.is_on()) return;
  const std::string overlap =
      overlap_warning(first.training->info(), first.validation->info(), first.window);
  if (!overlap.empty()) report_.warnings.push_back(overlap);
}

// Samples, lead times, losses and layers on variables, as far as they can be checked without a
// graph.
void Checks::check_data() const {
  const model::NetworkPlan plan = network_plan(config_.model, config_.data, *data_);
  std::vector<const data::DatasetInfo*> infos;
  for (size_t d = 0; d < data_->size(); ++d) {
    check_dataset((*data_)[d], plan.datasets[d]);
    infos.push_back(&(*data_)[d].training->info());
  }
  train::check_training_samples(infos, data_->front().window, config_.train.longest_rollout());
  std::vector<train::FurtherValidation> further;
  for (size_t d = 1; d < data_->size(); ++d)
    further.push_back(validation_of((*data_)[d]));
  const DataParts& first = data_->front();
  const train::FurtherValidation own = validation_of(first);
  const parallel::ProcessMesh mesh;
  const train::Validation validation(config_.train.validation, {.source = own.source,
                                                                .variables = own.variables,
                                                                .window = first.window,
                                                                .timestep_s = first.timestep_s,
                                                                .cell_weights = own.cell_weights,
                                                                .region = own.region,
                                                                .regions = own.regions,
                                                                .nodes = own.nodes,
                                                                .mesh = mesh,
                                                                .further = further});
  check_scores(config_, validation);
}

// Values of scores are not asked for: cells weigh the same, there is no loss, and any cell stands
// for the region that the graph knows.
train::FurtherValidation Checks::validation_of(const DataParts& data) const {
  const int64_t cells = data.validation->info().num_nodes();
  at::Tensor region;
  if (!config_.train.validation.region.empty()) {
    region = at::zeros({cells}, at::kBool);
    region[0] = true;
  }
  return {.name = data.name,
          .source = data.validation_source,
          .variables = data.variables,
          .cell_weights = std::vector<float>(static_cast<size_t>(cells), 1.0f),
          .region = region,
          .regions = validation_regions(config_.train.validation, data.validation->info(),
                                        /*may_lack=*/data_->size() > 1),
          .nodes = {0, cells},
          .loss = nullptr};
}

void Checks::check_loss(const DataParts& data, const at::Tensor& output_mask) const {
  const data::DatasetInfo& info = data.training->info();
  graph::NodeSet nodes;  // of the dataset; what is at them is not looked at
  nodes.lat_rad.resize(static_cast<size_t>(info.num_nodes()));
  train::check_loss(config_.loss, {.variables = data.variables,
                                   .statistics = data.statistics,
                                   .tendencies = data.tendencies,
                                   .nodes = nodes,
                                   .grid_name = config_.graph.grid,
                                   .output_mask = output_mask,
                                   .timestep_s = data.timestep_s,
                                   .times_out = data.window.times_out});
}

// Losses and masks of cells that are not predicted.
void Checks::check_masks(const graph::Graph& graph) const {
  for (size_t d = 0; data_ && d < data_->size(); ++d) {
    const at::Tensor mask = output_mask(config_.model, config_.data, d, graph);
    if (mask.defined()) check_loss((*data_)[d], mask);
  }
}

void Checks::check_dataset(const DataParts& data, const model::DatasetPlan& plan) const {
  const data::DatasetInfo& info = data.training->info();
  check_loss(data);
  model::ParameterSet scratch(at::kFloat, 0);
  for (size_t i = 0; i < plan.bounding.size(); ++i) {
    model::Bounding(model::ParameterScope(scratch, std::to_string(i)), plan.bounding[i],
                    plan.layout.outputs, concat("model.bounding.", i));
  }
  model::make_residual(model::ParameterScope(scratch, "residual"), plan.residual,
                       {.times_in = plan.layout.times_in,
                        .input_names = plan.layout.input_names,
                        .input_prognostic = plan.layout.input_prognostic,
                        .nodes = {.latlon_rad = coordinates_of(info)},
                        .path = plan.paths.residual});
}

void Checks::check_graph() {
  const graph::GraphOptions& options = config_.graph;
  const bool needs_file = needs_graph_file(config_);
  bool from_file = needs_file || (!options.file.empty() && path_exists(options.file));
  if (!request_.files || from_file) {
    const bool is_readable =
        options.file.empty() || is_here("graph.file", options.file, "the graph");
    if (needs_file && !is_readable) return;
    from_file = from_file && is_readable;
  }
  const bool has_cells = data_ || options.grid != "dataset";
  if (!from_file && !has_cells) return;  // nothing to build it of
  const DataCells cells(data_ ? *data_ : std::vector<DataParts>());
  const graph::Coordinates unknown;
  const std::vector<graph::NamedCells> named =
      data_ ? cells.named() : std::vector<graph::NamedCells>{{"data", unknown}};
  const graph::Graph graph = !from_file  ? graph::joint_graph_outline(options, named)
                             : has_cells ? graph::load_or_build_joint_graph(options, named)
                                         : graph::load_graph(options.file).graph;
  app::check_graph(config_.model, graph, config_.data);
  num_hidden_ = graph.nodes(config_.model.meshes().front()).num_nodes();
  for (size_t d = 0; data_ && d < data_->size(); ++d)
    check_same_grid(graph.nodes((*data_)[d].name), (*data_)[d].training->info());
  for (size_t d = 0; d < config_.data.names().size(); ++d)
    validation_region(config_, graph, d);
  check_masks(graph);
  for (const std::string& name : config_.data.names()) {
    if (config_.train.validation.weights == train::GridWeights::kArea)
      check_area_weights(graph.nodes(name));
  }
  std::string text;
  for (const graph::NodeSet& set : graph.node_sets)
    text += concat(text.empty() ? "" : ", ", set.num_nodes(), " ", set.name, " nodes");
  if (from_file)
    text += concat(", from '", options.file, "'");
  else if (options.file.empty() || request_.files)
    text += ", to be built";
  note("graph: ", text);
}

// As the start would read it; without a graph of any number of rows.
void Checks::check_noise_matrix() {
  const std::string key = "model.ensemble.noise_matrix";
  const std::string& file = config_.model.ensemble.noise_matrix;
  if (file.empty()) return;
  if (request_.files)
    model::read_matrix(file, num_hidden_, -1, key);
  else
    report_.not_here.push_back(concat("the matrix '", file, "' (", key, ")"));
}

void Checks::find_weights() {
  const std::string& from = config_.init.from;
  if (from.empty() || checkpoint_ || request_.use == CheckRequest::Use::kValidate) return;
  if (!is_here("init.from", from, "the run or checkpoint")) return;
  take(find_checkpoint(from, "init.from"), WeightUse::kStart);
  note("weights: '", checkpoint_->path.string(), "' is sound");
}

// As the start would: by the tensors of the network, on the graph itself.
void Checks::compare_weights() {
  if (!checkpoint_) return;
  if (!data_ || (needs_graph_file(config_) && !path_exists(config_.graph.file))) {
    report_.not_here.push_back(concat("the weights of '", checkpoint_->path.string(),
                                      "' beside network and graph, for lack of these"));
    return;
  }
  const DataCells cells(*data_);
  graph::GraphOptions options = config_.graph;
  if (!options.given) {
    options.file = request_.files ? graph::stored_graph(options, cells.named()) : "";
    options.cache.clear();  // nothing is written
  }
  const graph::Graph graph = graph::load_or_build_joint_graph(options, cells.named());
  const at::ScalarType dtype = train::weight_type(config_.train.precision);
  model::ParameterSet parameters(dtype, /*seed=*/0);
  const model::EncoderProcessorDecoder network(
      parameters, network_plan(config_.model, config_.data, *data_, &graph),
      model::GraphTensors::create(graph, config_.model.edge_attributes, dtype));
  const bool is_trained = saved_->use == WeightUse::kStart || saved_->use == WeightUse::kResume;
  if (is_trained) train::add_adapters(parameters, config_.optimizer.lora);
  parameters.flatten(at::kCPU);
  const auto add = [&](const std::vector<std::string>& texts) {
    report_.warnings.insert(report_.warnings.end(), texts.begin(), texts.end());
  };
  const std::string hash = graph.content_hash();
  if (saved_->use == WeightUse::kStart) {
    add(check_weights(*checkpoint_, saved_->use, config_, hash));
    const train::InitReport report = train::init_parameters(
        *checkpoint_, parameters,
        {.may_skip = config_.init.may_skip,
         .by_name = variable_match(config_, *saved_, data_->front().variables)});
    add(to_lines(report));
    note("weights: ",
         report.count(train::InitUse::kTaken) + report.count(train::InitUse::kByVariable),
         " tensors are taken");
    return;
  }
  train::load_parameters(*checkpoint_, parameters);
  add(check_weights(*checkpoint_, saved_->use, config_, hash));
  note("weights: they fit network, graph and data");
}

void Checks::check_ranks() {
  const parallel::MeshSizes& sizes = config_.parallel.sizes;
  const int64_t of_replica = sizes.model * sizes.tensor * sizes.pipeline;
  if (sizes.data > 0) {
    note("ranks: ", of_replica * sizes.data);
  } else if (of_replica > 1) {
    note("ranks: a multiple of ", of_replica);
  }
  if (!request_.files && config_.run.device != DeviceChoice::kCpu) {
    report_.not_here.emplace_back("the device of the run (run.device)");
    return;
  }
  const c10::Device device = choose_device(config_.run.device, /*local_rank=*/0);
  set_arithmetic(config_.train.precision, device);
  check_device(config_, device);
  note("device: ", device_name(device), ", ", enum_name(config_.train.precision));
}

}  // namespace

std::string CheckReport::text() const {
  std::string lines;
  for (const std::string& line : checked)
    lines += line + "\n";
  for (const std::string& line : warnings)
    lines += concat("warning: ", line, "\n");
  for (const std::string& line : not_here)
    lines += concat("not checked: ", line, "\n");
  return lines + (not_here.empty() ? "the configuration is sound\n"
                                   : "the configuration is sound as far as it was checked\n");
}

CheckReport check_config(const RunConfig& config, const CheckRequest& request) {
  return Checks(config, request).run();
}

void check_device(const RunConfig& config, const c10::Device& device) {
  if (config.profile.nvtx && !device.is_cuda())
    throw ConfigError("profile.nvtx", "marks ranges for Nsight Systems, which needs a GPU");
}

}  // namespace aifs::app
