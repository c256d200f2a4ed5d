// SPDX-License-Identifier: Apache-2.0
#include "app/run/wiring.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "app/run/checkpoints.h"
#include "app/run/data_match.h"
#include "app/run/device.h"
#include "app/run/failure.h"
#include "app/run/make_data.h"
#include "app/run/memory_budget.h"
#include "app/run/model_graph.h"
#include "app/run/period_overlap.h"
#include "app/run/plan.h"
#include "app/run/share.h"
#include "app/run/signals.h"
#include "app/run/validation_parts.h"
#include "app/run/versions.h"
#include "app/run/weights_match.h"
#include "core/check.h"
#include "core/file_io.h"
#include "core/host.h"
#include "core/log.h"
#include "core/rng.h"
#include "core/time.h"
#include "data/sources/analytic_dataset.h"
#include "graph/nodes/gaussian_grid.h"
#include "parallel/gather_text.h"
#include "parallel/launch/runtime.h"
#include "parallel/together.h"
#include "train/optim/adapters.h"

namespace aifs::app {

namespace {

constexpr double kShareOfValidation = 1.0 / 3.0;  // of data.memory_mib, if there is any

// The edges within a set of nodes, or null.
const graph::EdgeSet* edges_within(const graph::Graph& graph, const std::string& nodes) {
  for (const graph::EdgeSet& edges : graph.edge_sets)
    if (edges.source == nodes && edges.target == nodes) return &edges;
  return nullptr;
}

}  // namespace

void check_area_weights(const graph::NodeSet& nodes) {
  if (nodes.attributes.count("area_weight") > 0) return;
  throw ConfigError("train.validation.weights",
                    "the data nodes of the graph have no attribute 'area_weight'",
                    "use \"cos_latitude\" or \"uniform\"");
}

namespace {

// Weights of the cells in validation scores.
std::vector<float> cell_weights(train::GridWeights kind, const graph::NodeSet& nodes) {
  if (kind == train::GridWeights::kArea) {
    check_area_weights(nodes);
    return nodes.attributes.at("area_weight").values;
  }
  std::vector<float> weights(nodes.lat_rad.size(), 1.0f);
  if (kind == train::GridWeights::kCosLatitude) {
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = std::cos(nodes.lat_rad[i]);
  }
  return weights;
}

void warn(const std::vector<std::string>& texts) {
  for (const std::string& text : texts)
    log::warning(text);
}

plan::Machine machine_of(const std::string& file) {
  try {
    return plan::load_machine(file);
  } catch (const Error& error) {
    throw ConfigError("log.machine", error.what(),
                      "name a file such as configs/machines/h200.json, or leave it empty");
  }
}

double peak_tflops(const plan::CardOptions& card, plan::Arithmetic arithmetic) {
  switch (arithmetic) {
    case plan::Arithmetic::kHalf:
      return card.half_tflops;
    case plan::Arithmetic::kTf32:
      return card.tf32_tflops;
    case plan::Arithmetic::kFp32:
      break;
  }
  return card.fp32_tflops;
}

// Processes of the run, each with a card; the ranks of a reproducible run are not.
int64_t num_cards(const RunConfig& config, const parallel::ProcessMesh& mesh) {
  return config.parallel.reproducible ? 0 : mesh.world().size();
}

}  // namespace

Run::Run(RunConfig config, const parallel::ProcessMesh& mesh, at::Device device,
         std::optional<SavedData> saved)
    : config_(std::move(config)),
      mesh_(&mesh),
      device_(device),
      saved_(std::move(saved)),
      pool_(std::make_shared<data::BufferPool>(device)) {
  if (config_.run.threads > 0) at::set_num_threads(static_cast<int>(config_.run.threads));
  set_arithmetic(config_.train.precision, device_);
  phases_.end("program");
  if (!mesh_->is_main()) return;  // others read what it has read, later
  const auto stores = open_stores(config_);
  if (stores) stores->remember();
  data_ = make_datasets(config_, stores, saved_ ? &*saved_ : nullptr);
  for (const std::string& warning : warnings_of(data_))
    log::warning(warning);
  if (stores) opened_ = stores->record();  // absent chunks, too: all ranks must see the same
  phases_.end("data");
  graph_ = make_graph(config_, data_, mesh_->sizes().model > 1);
  const std::string overlap =
      overlap_warning(data().training->info(), data().validation->info(), data().window);
  if (!overlap.empty() && config_.train.validation.is_on()) log::warning(overlap);
  if (graph_.way == GraphWay::kSent) warn_of_graph();
  phases_.end("graph");
}

void Run::warn_of_graph() const {
  for (const std::string& warning : graph_warnings(config_, graph_.graph, graph_.report))
    log::warning("graph: ", warning);
}

void Run::share() {
  app::share(opened_, mesh_->world());
  std::string saved = to_text(saved_);
  app::share(saved, mesh_->world());
  saved_ = saved_data_from_text(saved);
  parallel::together(
      mesh_->world(), [&] { open_data(); }, failure_handling());
  share_graph(graph_, config_, data_, *mesh_);
  if (mesh_->is_main() && graph_.way != GraphWay::kSent)
    warn_of_graph();  // what ranks have counted
  machine_ = share_of_machine(mesh_->world());
  phases_.end("sharing them");
}

void Run::open_data() {
  if (!mesh_->is_main()) {
    const auto stores = open_stores(config_);  // whose files this host may not have
    if (stores) stores->recall(opened_);
    data_ = make_datasets(config_, stores, saved_ ? &*saved_ : nullptr);
  }
  opened_.clear();
}

void Run::build() {
  build_network();
  for (size_t d = 0; d < data_.size(); ++d)
    losses_.push_back(make_loss(d));
  validation_ = make_validation();
  check_scores(config_, *validation_);
  if (mesh_->is_main() && is_trained()) operations_ = operations();
  phases_.end("network and loss");
}

// Weights that are scored, exported or forecast with hold what adapters add.
bool Run::is_trained() const {
  const bool is_scored =
      saved_ && (saved_->use == WeightUse::kScore || saved_->use == WeightUse::kForecast);
  return config_.run.mode != Mode::kValidate && !is_scored;
}

void Run::build_network() {
  app::check_graph(config_.model, graph_.graph, config_.data);
  const at::ScalarType dtype = weight_type(config_.train.precision);
  const model::GraphTensors tensors = make_tensors(dtype).to(device_);
  const uint32_t seed = derive_seed(static_cast<uint64_t>(config_.run.seed), SeedContext::kTrainer);
  parameters_ =
      std::make_unique<model::ParameterSet>(dtype, seed, activation_type(config_.train.precision));
  parameters_->slice_over(mesh_->tensor());
  if (mesh_->sizes().pipeline > 1)
    parameters_->divide_over(model::Stages(mesh_->stage_links(), layers_of_stages(config_)));
  fitted_ = fitted_model();
  network_ = std::make_unique<model::EncoderProcessorDecoder>(
      *parameters_, network_plan(fitted_, config_.data, data_, &graph_.graph), tensors);
  if (is_trained()) train::add_adapters(*parameters_, config_.optimizer.lora);
  parameters_->flatten(device_);
  for (size_t d = 0; d < data_.size(); ++d)
    output_masks_.push_back(app::output_mask(config_.model, config_.data, d, graph_.graph));
}

plan::StepInput Run::planned_step() const {
  const data::VariableTable& variables = data().variables;
  const int64_t prognostic = variables.num_prognostic();
  PlanRequest request;
  request.ranks = mesh_->world().size();
  request.variables = {prognostic, variables.num_inputs() - prognostic,
                       variables.num_outputs() - prognostic};
  plan::StepInput input = graph_.step_input(config_, request);
  input.network.gpu = device_.is_cuda();
  return input;
}

std::optional<plan::MemoryPlan> Run::planned_memory() const {
  if (data_.size() > 1) return std::nullopt;
  try {
    plan::StepInput input = planned_step();
    input.network.model = fitted_;
    return plan::plan_step(input, graph_.division(input)).memory;
  } catch (const Error&) {
    return std::nullopt;
  }
}

train::Operations Run::operations() const {
  const std::string& file = config_.log.machine;
  const std::optional<plan::Machine> machine =
      file.empty() ? std::nullopt : std::optional(machine_of(file));
  if (data_.size() > 1) return {};
  try {
    plan::StepInput input = planned_step();
    input.network.model = fitted_;
    constexpr double kPasses = 3.0;  // the backward pass has twice the products of the forward one
    train::Operations operations{
        .per_sample =
            kPasses * plan::plan_step(input, graph_.division(input)).flops.unsplit_forward};
    if (machine)
      operations.peak_per_s = 1e12 * peak_tflops(machine->card, input.arithmetic) *
                              static_cast<double>(num_cards(config_, *mesh_));
    return operations;
  } catch (const Error&) {
    return {};
  }
}

std::optional<std::vector<std::string>> Run::watched_gpus() const {
  const std::vector<std::string> hosts = parallel::gather_text(mesh_->world(), host_identity());
  const std::vector<std::string> addresses =
      parallel::gather_text(mesh_->world(), gpu_address(device_));
  if (config_.log.gpus == train::GpuFigures::kNone) return std::nullopt;
  if (config_.log.gpus == train::GpuFigures::kHost) return std::vector<std::string>();
  std::vector<std::string> here;
  for (size_t rank = 0; rank < hosts.size(); ++rank)
    if (hosts[rank] == hosts.front() && !addresses[rank].empty()) here.push_back(addresses[rank]);
  if (here.empty()) return std::nullopt;
  return here;
}

model::ModelOptions Run::fitted_model() const {
  if (config_.model.memory_budget == 0.0) return config_.model;
  const FittedModel fitted = [&] {
    try {
      const plan::StepInput input = planned_step();
      return fit_memory(input, graph_.division(input));
    } catch (const ConfigError& error) {
      const std::string what = error.what();
      if (what.starts_with("'model.memory_budget'")) throw;
      throw ConfigError("model.memory_budget",
                        concat("needs a plan of the step (--dry-run), and there is none: ", what),
                        "set it to 0, and choose recompute and chunks of the parts by hand");
    }
  }();
  if (mesh_->is_main()) log::info(fitted.text);
  return fitted.options;
}

// The graph of this rank: all of it, or its part if samples are divided.
model::GraphTensors Run::make_tensors(at::ScalarType dtype) {
  const std::vector<std::string>& attributes = config_.model.edge_attributes;
  const int64_t shards = mesh_->sizes().model;
  if (shards == 1) {
    for (const DataParts& data : data_)
      cells_per_rank_.push_back({graph_.graph.nodes(data.name).num_nodes()});
    return model::GraphTensors::create(graph_.graph, attributes, dtype);
  }
  const graph::GraphPartition partition =
      graph_.divided ? graph_.divided->partition
                     : graph::make_partition(graph_.graph, shards, hidden_order(config_),
                                             config_.model.layers);
  cells_per_rank_ = {partition.data.counts()};
  const model::Shard shard{partition, mesh_->model(), config_.parallel.mapper_sources,
                           config_.parallel.attention};
  if (!graph_.divided) return model::GraphTensors::create(graph_.graph, attributes, dtype, &shard);
  return model::GraphTensors::create(graph_.graph, std::exchange(graph_.divided->own, {}),
                                     attributes, dtype, shard);
}

data::NodeRange Run::cells_of(size_t dataset) const {
  const parallel::Counts starts = starts_of(cells_per_rank_[dataset]);
  const auto rank = static_cast<size_t>(mesh_->model().rank());
  return {starts[rank], starts[rank + 1]};
}

train::NodeSlice Run::slice_of(size_t dataset) const {
  return train::slice_of_group(cells_per_rank_[dataset], mesh_->model());
}

at::Tensor Run::output_mask_of(size_t dataset) const {
  const at::Tensor& mask = output_masks_[dataset];
  const data::NodeRange cells = cells_of(dataset);
  return mask.defined() ? mask.narrow(0, cells.begin, cells.size()) : mask;
}

train::LossPtr Run::make_loss(size_t dataset) const {
  const DataParts& data = data_[dataset];
  return train::build_loss(config_.loss, {.variables = data.variables,
                                          .statistics = data.statistics,
                                          .tendencies = data.tendencies,
                                          .nodes = graph_.graph.nodes(data.name),
                                          .edges = edges_within(graph_.graph, data.name),
                                          .grid_name = config_.graph.grid,
                                          .output_mask = output_masks_[dataset],
                                          .timestep_s = data.timestep_s,
                                          .times_out = data.window.times_out,
                                          .dtype = parameters_->dtype(),
                                          .device = device_});
}

data::LoaderOptions Run::loading(double share_of_memory, size_t dataset) const {
  const auto values = [](const DataParts& data) {
    const data::DatasetInfo& info = data.training->info();
    return static_cast<double>(info.num_nodes() * info.num_variables());
  };
  double all = 0.0;
  for (const DataParts& data : data_)
    all += values(data);
  const double share = values(data_[dataset]) / all;
  const auto num_datasets = static_cast<int64_t>(data_.size());
  // Each dataset has a loader, and memory that nobody chose is shared among them, too.
  data::LoaderOptions options = loader_options(config_.data, device_, machine_, num_datasets);
  options.nodes = cells_of(dataset);
  options.memory_bytes =
      static_cast<int64_t>(share_of_memory * share * static_cast<double>(options.memory_bytes));
  const auto threads = static_cast<double>(options.threads);
  options.threads = std::max<int64_t>(1, std::llround(share * threads));
  options.pool = pool_;
  return options;
}

train::FurtherValidation Run::validated(size_t dataset) const {
  const DataParts& data = data_[dataset];
  std::vector<float> weights =
      cell_weights(config_.train.validation.weights, graph_.graph.nodes(data.name));
  if (const at::Tensor& mask = output_masks_[dataset]; mask.defined()) {
    const bool* decided = mask.const_data_ptr<bool>();
    for (size_t i = 0; i < weights.size(); ++i)
      if (!decided[i]) weights[i] = 0.0f;
  }
  return {.name = data.name,
          .source = data.validation_source,
          .variables = data.variables,
          .cell_weights = weights,
          .region = validation_region(config_, graph_.graph, dataset),
          .regions = validation_regions(config_.train.validation, data.validation->info(),
                                        /*may_lack=*/data_.size() > 1),
          .post_processor = data.post_processor,
          .nodes = cells_of(dataset),
          .loading = loading(kShareOfValidation, dataset),
          .loss = losses_[dataset],
          .loss_nodes = slice_of(dataset)};
}

std::unique_ptr<train::Validation> Run::make_validation() const {
  const train::FurtherValidation first = validated(0);
  train::ValidationSetup setup{.source = first.source,
                               .variables = first.variables,
                               .window = data().window,
                               .timestep_s = data().timestep_s,
                               .cell_weights = first.cell_weights,
                               .region = first.region,
                               .regions = first.regions,
                               .post_processor = first.post_processor,
                               .nodes = first.nodes,
                               .mesh = *mesh_,
                               .loading = first.loading,
                               .dtype = parameters_->dtype(),
                               .device = device_,
                               .loss_nodes = first.loss_nodes,
                               .longest_rollout = std::max(config_.train.validation.rollout,
                                                           config_.train.longest_rollout()),
                               .name = first.name};
  for (size_t d = 1; d < data_.size(); ++d)
    setup.further.push_back(validated(d));
  return std::make_unique<train::Validation>(config_.train.validation, setup);
}

std::vector<train::FurtherDataset> Run::further_training(double share_of_memory) const {
  std::vector<train::FurtherDataset> further;
  for (size_t d = 1; d < data_.size(); ++d) {
    const DataParts& data = data_[d];
    further.push_back({data.name, data.training_source, data.variables, loading(share_of_memory, d),
                       losses_[d], slice_of(d), output_mask_of(d)});
  }
  return further;
}

train::CheckpointMeta Run::checkpoint_meta() {
  return {.program_version = program_version(),
          .torch_version = torch_version(),
          .config_json = effective_json(config_),
          .config_hash = config_hash(config_),
          .graph_hash = graph_.hash,
          .data_json = record_of(config_, data_),
          .time_utc = ""};
}

std::unique_ptr<train::Trainer> Run::make_trainer(const std::function<void(int64_t)>& at_step) {
  shared_reading_ =
      share_reading(config_, data(), config_.train.longest_rollout(), *mesh_, device_, machine_);
  const bool validates = config_.train.validation.is_on() && config_.run.mode != Mode::kSynthetic;
  const double share_of_memory = validates ? 1.0 - kShareOfValidation : 1.0;
  data::LoaderOptions loader = loading(share_of_memory, 0);
  loader.share = shared_reading_.memory;
  const train::TrainerParts parts{
      .name = data().name,
      .source = data().training_source,
      .variables = data().variables,
      .window = data().window,
      .sampling = sampling_of(config_, *mesh_),
      .loading = loader,
      .parameters = *parameters_,
      .network = *network_,
      .loss = losses_[0],
      .loss_nodes = slice_of(0),
      .output_mask = output_mask_of(0),
      .validation = config_.run.mode == Mode::kSynthetic ? nullptr : validation_.get(),
      .mesh = *mesh_,
      .device = device_,
      .further = further_training(share_of_memory)};
  const bool is_synthetic = config_.run.mode == Mode::kSynthetic;
  train::CheckpointOptions checkpoints = config_.checkpoint;
  if (is_synthetic) checkpoints = {.at_end = false};
  const train::TrainerOptions options{
      .train = config_.train,
      .optimizer = config_.optimizer,
      .checkpoint = checkpoints,
      .log = config_.log,
      .profile = config_.profile,
      .sharding = config_.parallel.sharding,
      .reduction = config_.parallel.gradients,
      .one_host = !config_.parallel.reproducible && parallel::Runtime::one_host(),
      .run_dir = config_.run.dir,
      .checkpoint_meta = checkpoint_meta(),
      .should_stop = stop_requested,
      .at_step = at_step,
      .program_start = Phases::program_start(),
      .operations = operations_,
      .gpus = gpus_,
      .resident_data = is_synthetic,
      .failure = failure_handling()};
  return std::make_unique<train::Trainer>(options, parts);
}

train::Outcome Run::train(const std::optional<train::CheckpointInfo>& resume_from,
                          const std::function<void(int64_t)>& at_step) {
  gpus_ = watched_gpus();
  const std::unique_ptr<train::Trainer> trainer = make_trainer(at_step);
  // Only the main rank knows the checkpoint to go on from, and finds the one to start from, which
  // must be the same for all. The first rank of each group that has the same parameters reads it,
  // the others get what that one has.
  std::optional<train::CheckpointInfo> other;
  const auto find = [&] {
    if (mesh_->is_main() && !resume_from && !config_.init.from.empty())
      other = find_checkpoint(config_.init.from, "init.from");
  };
  parallel::together(mesh_->world(), find, failure_handling());
  const auto for_all = [&](const std::optional<train::CheckpointInfo>& own) {
    return parallel::gather_text(mesh_->world(), own ? own->path.string() : "").front();
  };
  const std::string checkpoint = for_all(resume_from), start = for_all(other);
  const auto load = [&] {
    if (!start.empty()) start_from_other_run(other ? *other : train::inspect_checkpoint(start));
    if (checkpoint.empty() || mesh_->alike().rank() != 0) return;
    trainer->load(resume_from ? *resume_from : train::inspect_checkpoint(checkpoint));
    if (!resume_from) return;
    warn(check_weights(*resume_from, WeightUse::kResume, config_, graph_.hash));
    log::info("resuming at step ", resume_from->state.step, " from '", resume_from->path.string(),
              "'");
  };
  parallel::together(mesh_->world(), load, failure_handling());
  trainer->share_state(resume_from.has_value());
  defer_stops();  // from here on there is work to save
  const train::Outcome outcome = trainer->run();
  if (const std::string files = files_read(data(), mesh_->world()); !files.empty())
    log::info(files);
  return outcome;
}

void Run::start_from_other_run(const train::CheckpointInfo& other) {
  const std::vector<std::string> warnings =
      check_weights(other, WeightUse::kStart, config_, graph_.hash);
  train::InitOptionsOfWeights options{.may_skip = config_.init.may_skip, .by_name = {}};
  if (saved_) options.by_name = variable_match(config_, *saved_, data().variables);
  const train::InitReport report = train::init_parameters(other, *parameters_, options);
  if (!mesh_->is_main()) return;
  warn(warnings);
  warn(to_lines(report));
  log::info("starting from the weights of '", other.path.string(),
            "': ", report.count(train::InitUse::kTaken) + report.count(train::InitUse::kByVariable),
            " tensors\n", report.table());
}

void Run::load_weights(const train::CheckpointInfo& checkpoint, WeightUse use) {
  train::load_parameters(checkpoint, *parameters_);
  if (config_.optimizer.average.kind != train::AverageKind::kNone) {
    train::load_average(checkpoint, *parameters_);
  }
  const std::vector<std::string> warnings = check_weights(checkpoint, use, config_, graph_.hash);
  if (mesh_->is_main()) warn(warnings);
}

fs::path Run::adopt_weights(const NamedTensors& weights, const std::string& prefix,
                            const OtherTraining& training) {
  train::load_parameters(weights, prefix, *parameters_);
  train::AdamW optimizer(*parameters_, config_.optimizer.adamw);
  if (config_.optimizer.average.kind != train::AverageKind::kNone) {
    optimizer.attach(train::kAverageState, parameters_->flat_values());
  }
  if (training.moments) {
    train::OptimizerState moments{
        {{"moment1", optimizer.moment1()}, {"moment2", optimizer.moment2()}}};
    train::load_optimizer(*training.moments, *parameters_, moments);
    optimizer.set_num_steps(training.optimizer_steps);
  }
  train::CheckpointMeta meta = checkpoint_meta();
  meta.time_utc = format_date(static_cast<int64_t>(std::time(nullptr)));
  return train::write_checkpoint(checkpoint_folder(config_), training.state,
                                 train::gather_tensors(*parameters_, optimizer), meta);
}

train::Forecaster Run::make_forecaster(bool with_truth) const {
  std::vector<const data::VariableTable*> tables;
  train::ForecastExtras extras{.with_truth = with_truth};
  for (size_t d = 0; d < data_.size(); ++d) {
    tables.push_back(&data_[d].variables);
    const at::Tensor mask = output_mask_of(d);
    extras.output_masks.push_back(mask.defined() ? mask.to(device_) : mask);
  }
  return {*network_, tables, data().window, device_, extras};
}

forecast::ForecastSetup Run::forecast_setup() const {
  forecast::ForecastSetup setup{.datasets = {},
                                .window = data().window,
                                .timestep_s = data().timestep_s,
                                .mesh = *mesh_,
                                .dtype = parameters_->dtype(),
                                .device = device_,
                                .seed = static_cast<uint64_t>(config_.run.seed)};
  for (size_t d = 0; d < data_.size(); ++d) {
    setup.datasets.push_back({.source = data_[d].training_source,
                              .variables = data_[d].variables,
                              .post_processor = data_[d].post_processor,
                              .loading = loading(1.0, d),
                              .cells_per_rank = cells_per_rank_[d],
                              .output_mask = output_masks_[d]});
  }
  return setup;
}

void Run::validate(const train::CheckpointInfo& checkpoint) {
  parallel::together(
      mesh_->world(), [&] { load_weights(checkpoint); }, failure_handling());
  const train::Forecaster forecaster = make_forecaster(/*with_truth=*/true);
  const int64_t chosen = config_.train.validation.rollout;
  const train::ValidationResult result = validation_->run(
      forecaster, *losses_[0],
      {.rollout = chosen > 0
                      ? chosen
                      : train::rollout_of_last_step(config_.train.rollout, checkpoint.state)});
  const auto check = [&] {
    if (!result.failure.empty() && mesh_->is_main())
      throw DataError(concat("the validation failed: ", result.failure));
  };
  parallel::together(mesh_->world(), check, failure_handling());
  if (!mesh_->is_main()) return;
  nlohmann::ordered_json json{{"step", checkpoint.state.step}, {"epoch", checkpoint.state.epoch}};
  json.update(train::to_json(result, data().variables));
  const fs::path path =
      fs::path(config_.run.dir) / concat("validation-step-", checkpoint.state.step, ".json");
  std::printf("%s\n", train::to_table(result, data().variables).c_str());
  std::fflush(stdout);  // the figures are there even if the file cannot be written
  make_directories(config_.run.dir);
  write_file_atomic(path, json.dump(2) + "\n");
  log::info("loss ", result.loss, " over ", result.num_dates, " dates; figures in '", path.string(),
            "'");
}

}  // namespace aifs::app
