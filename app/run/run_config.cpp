// SPDX-License-Identifier: Apache-2.0
#include "app/run/run_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/run/named_parts.h"
#include "core/check.h"
#include "core/file_io.h"
#include "core/join.h"
#include "core/shares.h"

namespace aifs::app {

namespace {

// Keys that change how a run is carried out, not what it computes.
constexpr std::array kNotHashed{"/run/dir",
                                "/run/device",
                                "/run/mode",
                                "/run/log_level",
                                "/log",
                                "/profile",
                                "/checkpoint",
                                "/data/threads",
                                "/data/prefetch_batches",
                                "/data/memory_mib",
                                "/data/retries",
                                "/data/cache",
                                "/data/share_on_host",
                                "/data/tables",
                                "/parallel",
                                "/model/kernels",
                                "/model/memory_budget",
                                "/model/encoder/chunks",
                                "/model/processor/chunks",
                                "/model/decoder/chunks",
                                "/model/encoder/recompute",
                                "/model/processor/recompute",
                                "/model/decoder/recompute",
                                "/model/processor/edge_ranges",
                                "/model/processor/offload",
                                "/train/cuda_graph",
                                "/train/max_minutes",
                                "/train/max_steps",
                                "/train/max_epochs",
                                "/train/validation",
                                "/train/early_stop"};

// Checks what stages can share.
void check_stages(const RunConfig& c) {
  const int64_t stages = c.parallel.sizes.pipeline, layers = c.model.num_layers();
  const std::vector<int64_t>& given = c.parallel.stage_layers;
  if (!given.empty() &&
      (static_cast<int64_t>(given.size()) != stages || starts_of(given).back() != layers)) {
    throw ConfigError("parallel.stage_layers",
                      concat("names ", starts_of(given).back(), " layers of ", given.size(),
                             " stages, there are ", layers, " layers and ", stages, " stages"));
  }
  if (stages == 1) return;
  model::check_stages(c.model.processor, stages);
  const std::vector<int64_t> counts = layers_of_stages(c);
  if (std::count(counts.begin() + 1, counts.end() - 1, 0) > 0 ||
      (given.empty() && stages > layers)) {
    throw ConfigError("parallel.pipeline",
                      concat("is ", stages, ": stages without a layer of the ", layers),
                      "only the first and the last can do without, by parallel.stage_layers");
  }
  const auto refuse = [&](bool is_used, const char* what) {
    if (is_used)
      throw ConfigError("parallel.pipeline",
                        concat("is ", stages, ", which does not go with ", what),
                        "use 1, and parallel.model or parallel.data for more ranks");
  };
  refuse(c.train.rollout.recompute, "train.rollout.recompute");
  refuse(c.parallel.reproducible, "parallel.reproducible");
}

// Throws ConfigError for what several datasets do not go with.
void check_datasets(const RunConfig& c) {
  check_named_parts(c.model, c.data);
  if (c.data.datasets.size() < 2 && c.model.aggregation != model::Aggregation::kSum) {
    throw ConfigError("model.aggregation", "is for several datasets, and there is one",
                      "leave it out, or name them in data.datasets");
  }
  if (c.data.datasets.empty()) return;
  if (c.graph.grid != "dataset") {
    throw ConfigError("graph.grid",
                      concat("is '", c.graph.grid, "', and there are several datasets"),
                      "use \"dataset\": each has its own cells");
  }
  const auto refuse = [](bool is_used, const char* path, const char* hint) {
    if (is_used) throw ConfigError(path, "does not go with several datasets yet", hint);
  };
  const char* replicas = "use 1, and parallel.data for more ranks";
  refuse(c.parallel.sizes.model > 1, "parallel.model", replicas);
  refuse(c.parallel.sizes.tensor > 1, "parallel.tensor", replicas);
  refuse(c.parallel.sizes.pipeline > 1, "parallel.pipeline", replicas);
  refuse(c.model.memory_budget > 0.0, "model.memory_budget",
         "set it to 0, and choose recompute and chunks of the parts by hand");
  for (size_t d = 0; d < c.data.datasets.size(); ++d) {
    const NamedParts parts = parts_of(c.model, c.data, d);
    refuse(parts.encoder->kind == model::BlockKind::kPointWise,
           (parts.paths.encoder + ".kind").c_str(),
           "a point_wise encoder has hidden nodes at the cells of one dataset; choose another "
           "kind");
  }
  refuse(c.model.aggregation == model::Aggregation::kConcat && !c.model.hierarchy.meshes.empty(),
         "model.aggregation", "of a hierarchy it is sum or mean");
  refuse(c.run.mode == Mode::kIo, "run.mode", "measure the reading of one dataset at a time");
}

void check_sources(const RunConfig& c) {
  const bool has_grid = !c.data.analytic.grid.empty();
  if (c.data.kind == data::SourceKind::kAnalytic && (c.graph.grid == "dataset") != has_grid) {
    if (has_grid) {
      throw ConfigError("graph.grid", "and data.analytic.grid both name a grid",
                        "use \"dataset\": the cells are those of the dataset");
    }
    throw ConfigError("graph.grid", "the analytic dataset has no grid of its own",
                      "name one, for example \"o16\"");
  }
  if (needs_graph_file(c) && c.graph.file.empty()) {
    throw ConfigError("model.hierarchy.meshes", "section graph makes no such node sets",
                      "list them in graph.nodes (configs/graphs has hierarchies), name a file with "
                      "them in graph.file, or leave the list empty");
  }
  const auto reads_netcdf = [](const data::DatasetTree& tree) {
    return !tree.netcdf.files.empty();
  };
  const bool any_netcdf =
      reads_netcdf(c.data.dataset) ||
      std::any_of(c.data.datasets.begin(), c.data.datasets.end(),
                  [&](const auto& named) { return reads_netcdf(named.second.dataset); });
  if (any_netcdf && !c.data.cache.dir.empty()) {
    throw ConfigError("data.cache.dir", "chunks of Anemoi datasets are copied, not netCDF files",
                      "leave it out, or copy the files yourself");
  }
  check_datasets(c);
  if (c.data.kind == data::SourceKind::kAnemoi && c.data.datasets.empty() &&
      c.data.dataset.source_key().empty()) {
    throw ConfigError("data.dataset.dataset", "no dataset is named",
                      "give the path of a .zarr folder, datasets to combine, netCDF files, or set "
                      "data.kind to \"analytic\"");
  }
}

void check_shared_process(const RunConfig& c) {
  if (c.parallel.reproducible && c.model.ensemble.noise != model::NoiseKind::kNone) {
    throw ConfigError(
        "parallel.reproducible",
        "the ranks of a process would draw the noise of an ensemble from one generator",
        "leave it out: noise is the same on any number of ranks anyway");
  }
  if (c.parallel.reproducible && (c.profile.steps > 0 || c.profile.nvtx)) {
    throw ConfigError(c.profile.nvtx ? "profile.nvtx" : "profile.steps",
                      "the ranks of a reproducible run share a process, and it has one profiler",
                      "leave it out, or set parallel.reproducible to false");
  }
  if (c.profile.nvtx && c.profile.steps > 0) {
    throw ConfigError("profile.nvtx", "and profile.steps need the same profiler", "choose one");
  }
}

// Scores by which a run is judged come from validations while it trains.
void check_judging(const RunConfig& c) {
  const train::ValidationOptions& validation = c.train.validation;
  const bool during = validation.every_steps > 0 || validation.every_epochs > 0;
  if (c.checkpoint.keep_best.is_on() && !validation.is_on()) {
    throw ConfigError("checkpoint.keep_best.number",
                      "keeps checkpoints by the scores of validations, and there are none",
                      "set train.validation.every_steps or every_epochs");
  }
  if (c.train.early_stop.is_on() && !during) {
    throw ConfigError("train.early_stop.score",
                      "is a score of validations during training, and there are none",
                      "set train.validation.every_steps or every_epochs");
  }
}

// Checks how weights are trained, and what they start from.
void check_training(const RunConfig& c) {
  train::ScheduleOptions schedule = c.optimizer.schedule;
  if (schedule.total_steps == 0) schedule.total_steps = c.train.max_steps;
  check_end(schedule, "optimizer.schedule");
  const auto refuse = [](bool is_used, const char* path, const char* what, const char* hint) {
    if (is_used) throw ConfigError(path, what, hint);
  };
  if (c.optimizer.lora.is_on()) {
    const char* hint = "leave it out, or train without optimizer.lora";
    refuse(c.init.from.empty(), "optimizer.lora.rank",
           "adapts trained weights, and init.from names none",
           "name the run or checkpoint to start from");
    refuse(c.parallel.sharding.states != train::Sharding::kNone, "parallel.sharding.states",
           "does not go with adapters: their gradients need whole matrices", hint);
    refuse(c.parallel.sizes.tensor > 1, "parallel.tensor", "does not go with adapters yet", hint);
    refuse(c.parallel.sizes.pipeline > 1, "parallel.pipeline", "does not go with adapters yet",
           hint);
    refuse(c.parallel.gradients.compression == train::Compression::kPowerSgd,
           "parallel.gradients.compression",
           "is powersgd, which does not go with adapters: both are of low rank", hint);
  }
  if (!c.init.variables_by_name) return;
  const char* by_name = "init.variables_by_name";
  refuse(!c.data.datasets.empty(), by_name, "does not go with several datasets yet",
         "start from weights of the same variables");
  const model::ResidualKind residual = c.model.residual.kind;
  refuse(residual == model::ResidualKind::kScalarOrnstein ||
             residual == model::ResidualKind::kSpectralOrnstein,
         by_name, "does not go with an ornstein residual, which has weights for each variable",
         "start from weights of the same variables, or use another residual");
  using model::BlockKind;
  refuse(
      c.model.encoder.kind == BlockKind::kGnn && c.model.decoder.kind != BlockKind::kGnn, by_name,
      "does not go with a decoder of another kind than its GNN encoder: what that decoder gets is "
      "no row of variables",
      "start from weights of the same variables");
  const bool encoded = c.model.decoder.target_features == std::vector<std::string>{"encoded_data"};
  refuse(!encoded, by_name, "goes with model.decoder.target_features [\"encoded_data\"] only",
         "start from weights of the same variables");
}

void check_together(const RunConfig& c) {
  check_sources(c);
  check_training(c);
  train::check_reduction(c.parallel.sharding, c.parallel.gradients);
  model::check_slices(c.model.processor, c.parallel.sizes.tensor);
  check_stages(c);
  if (c.model.memory_budget > 0.0 && c.parallel.sizes.tensor > 1) {
    throw ConfigError("model.memory_budget",
                      "does not go with parallel.tensor: plans of sliced layers are too small",
                      "set it to 0, and choose recompute and chunks of the parts by hand");
  }
  check_shared_process(c);
  check_judging(c);
  c.loss.check(c.model.ensemble.members, c.data.multistep_output);
}

// Returns what of an effective configuration determines the numbers of a run.
config::Json numbers_only(config::Json tree) {
  using Pointer = config::Json::json_pointer;
  const Pointer total("/optimizer/schedule/total_steps"), max_steps("/train/max_steps");
  if (tree.value(total, int64_t{0}) == 0 && tree.contains(max_steps)) {
    tree[total] = tree[max_steps];  // the end of the cosine is that of the training
  }
  for (const char* path : kNotHashed) {
    const Pointer pointer(path);
    if (tree.contains(pointer)) tree[pointer.parent_pointer()].erase(pointer.back());
  }
  for (const char* list : {"/model/encoders", "/model/decoders"}) {
    if (!tree.contains(Pointer(list))) continue;
    for (auto& [name, mapper] : tree[Pointer(list)].items()) {
      mapper.erase("chunks");
      mapper.erase("recompute");
    }
  }
  return tree;
}

void read_tree(RunConfig& config, const std::vector<config::Field>& fields, config::Json tree,
               const std::vector<std::string>& overrides) {
  config::ReadContext context;
  for (const std::string& assignment : overrides) {
    config::apply_override(tree, assignment, fields, context);
  }
  config::read_object(fields, tree, "", context);
  check_together(config);
}

void add_differences(const config::Json& a, const config::Json& b, const std::string& path,
                     std::vector<std::string>& out) {
  if (!a.is_object() || !b.is_object()) {
    if (a != b) out.push_back(path);
    return;
  }
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  for (const auto& [key, value] : a.items()) {
    add_differences(value, b.contains(key) ? b.at(key) : config::Json(), below(key), out);
  }
  for (const auto& [key, value] : b.items()) {
    if (!a.contains(key)) out.push_back(below(key));
  }
}

}  // namespace

void RunOptions::bind(config::Binder& b) {
  b.text("dir", dir,
         {"folder of all output, relative to where the program is started; created if needed"});
  b.integer("seed", seed, {.min = 0}, {"base of all random numbers: weights and sample order"});
  b.choice("device", device,
           {"where arithmetic runs; auto: a GPU if the program was built for one and finds it"});
  b.choice("mode", mode,
           {"train; validate: only score the latest checkpoint; io: only read what training would "
            "read; synthetic: train on the first sample again and again, without checkpoints. The "
            "last two say whether reading or computing takes the time"});
  b.integer(
      "threads", threads, {.min = 0, .max = 4096},
      {"CPU threads for arithmetic; 0: OMP_NUM_THREADS, or the rank's share of the cores that "
       "it may use"});
  b.choice("log_level", log_level, {"least important messages that are shown"});
}

void RunOptions::validate(const std::string& path) const {
  if (dir.empty()) throw ConfigError(path + ".dir", "is empty");
}

void ParallelOptions::bind(config::Binder& b) {
  b.integer("model", sizes.model, {.min = 1, .max = 1 << 20},
            {"ranks that share one sample, next to each other", "ranks"});
  b.integer("data", sizes.data, {.min = 0, .max = 1 << 20},
            {"replicas of the model; 0: all ranks there are, divided by the other sizes"});
  b.integer("pipeline", sizes.pipeline, {.min = 1, .max = 1 << 10},
            {"stages: ranks that have some of the processor's layers each, the first the encoder "
             "and the last the decoder, too; they work on the batches of a step "
             "(train.accumulate_batches) one after another",
             "ranks"});
  b.integer_list("stage_layers", stage_layers, {.min = 0, .max = 1 << 20},
                 {"processor layers of each stage, of a hierarchy those of all meshes on the way "
                  "down and up again; empty: shared out evenly",
                  "layers"});
  b.integer("tensor", sizes.tensor, {.min = 1, .max = 1 << 10},
            {"ranks that hold slices of the same processor layers: hidden channels of MLPs and "
             "attention heads",
             "ranks"});
  b.choice("hidden_order", hidden_order,
           {"how hidden nodes are divided over the ranks of a sample: by latitude, along a Hilbert "
            "curve, in the mesh's own order; auto: the last for a transformer, else whichever of "
            "the others moves fewer rows"});
  b.choice(
      "mapper_sources", mapper_sources,
      {"how encoder and decoder get the nodes that their edges start from: only those of other "
       "ranks that are needed, or all"});
  b.section("sharding", sharding, {"What each rank keeps of moments, gradients and values"});
  b.section("gradients", gradients, {"How gradients are summed over ranks"});
  b.choice(
      "attention", attention,
      {"how a transformer meets the rows of other ranks: all rows for a share of the heads, or "
       "all heads for the keys and values that own rows see; auto: whichever sends less"});
  b.boolean("reproducible", reproducible,
            {"the same bits for any number of processes that divides parallel.virtual_ranks: these "
             "are the ranks, each with one thread and weights of its own, and all sums are in "
             "their order"});
  b.integer("virtual_ranks", virtual_ranks, {.min = 1, .max = 1 << 16},
            {"ranks of a reproducible run, shared out over the processes", "ranks"});
  b.number(
      "timeout_s", timeout_s, {.min = 0.0},
      {"end the run when an operation waits so long for another rank that is not at known work "
       "(checkpoint, graph, reading, forecasts); 0: never",
       "s"});
}

void RunConfig::bind(config::Binder& b) {
  b.section("run", run, {"Where and how the program runs"});
  b.section("data", data, {"What is learnt: dataset, roles of variables, normalisation, batches"});
  b.section("graph", graph, {"Data grid, hidden mesh and the edges between them"});
  b.section("model", model, {"The network"});
  b.section("loss", loss, {"What is minimised"});
  b.section("train", train, {"How long, how precise, and when to validate"});
  b.section("optimizer", optimizer,
            {"Optimiser, learning rate, clipping, frozen parameters, averages"});
  b.section("init", init, {"Weights of another run to start from"});
  b.section("parallel", parallel, {"How ranks divide the work"});
  b.section("checkpoint", checkpoint, {"When checkpoints are written and how many are kept"});
  b.section("log", log, {"What is reported during a run"});
  b.section("profile", profile, {"Where the time goes"});
}

std::vector<int64_t> layers_of_stages(const RunConfig& config) {
  return config.parallel.stage_layers.empty()
             ? balanced_counts(config.model.num_layers(), config.parallel.sizes.pipeline)
             : config.parallel.stage_layers;
}

bool needs_graph_file(const RunConfig& config) {
  if (config.graph.given) return true;
  const std::vector<std::string>& meshes = config.model.hierarchy.meshes;
  return std::any_of(meshes.begin(), meshes.end(),
                     [&](const std::string& mesh) { return !config.graph.makes_nodes(mesh); });
}

graph::HiddenOrder hidden_order(const RunConfig& config) {
  const bool is_auto = config.parallel.hidden_order == graph::HiddenOrder::kAuto;
  return is_auto && config.model.uses(model::BlockKind::kTransformer)
             ? graph::HiddenOrder::kMesh
             : config.parallel.hidden_order;
}

RunConfig load_config(const std::string& file, const std::vector<std::string>& overrides) {
  RunConfig config;
  const std::vector<config::Field> fields = config::fields_of(config);
  read_tree(config, fields, config::load_file(file, fields), overrides);
  return config;
}

RunConfig parse_config(const std::string& json, const std::vector<std::string>& overrides) {
  RunConfig config;
  read_tree(config, config::fields_of(config), config::parse_json(json, "configuration"),
            overrides);
  return config;
}

std::string effective_json(RunConfig& config) {
  return config::write_object(config::fields_of(config)).dump(2) + "\n";
}

std::string config_hash(RunConfig& config) {
  const config::Json tree = config::write_object(config::fields_of(config));
  return sha256_hex(std::string_view(numbers_only(tree).dump()));
}

namespace {

// An effective configuration of another program, with the defaults of this one where it has no
// value, and without what the kinds do not read here; null if it is none.
config::Json completed(const std::string& config_json) {
  const config::Json given = config::Json::parse(config_json, nullptr, /*allow_exceptions=*/false);
  if (!given.is_object()) return nullptr;
  RunConfig defaults;
  const std::vector<config::Field> fields = config::fields_of(defaults);
  return config::with_defaults(fields, config::without_unread(fields, given));
}

// True for options with which the same weights are another function; the rest of section model says
// how it is computed, or how weights start.
bool shapes_function(const std::string& path) {
  if (path == "data.multistep_input" || path == "data.multistep_output") return true;
  if (path.starts_with("data.datasets.") &&
      (path.ends_with(".encoder") || path.ends_with(".decoder")))
    return true;
  return path.starts_with("model.") && !path.ends_with(".zero_extractor") &&
         path != "model.ensemble.members";
}

std::string value_at(const config::Json& tree, const std::string& path) {
  std::string pointer = "/" + path;
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  const config::Json::json_pointer place(pointer);
  return tree.contains(place) ? tree.at(place).dump() : "nothing";
}

}  // namespace

std::vector<std::string> differing_keys(const std::string& config_json, RunConfig& config) {
  const config::Json before = completed(config_json);
  if (!before.is_object()) return {};
  std::vector<std::string> paths;
  add_differences(numbers_only(before),
                  numbers_only(config::write_object(config::fields_of(config))), "", paths);
  return paths;
}

namespace {

void add_keys(const config::Json& tree, const std::string& path, std::vector<std::string>& keys) {
  for (const auto& [key, value] : tree.items()) {
    const std::string own = path.empty() ? key : concat(path, ".", key);
    value.is_object() && !value.empty() ? add_keys(value, own, keys) : keys.push_back(own);
  }
}

// Returns the names of data.datasets, in their order: side by side, latents have places.
std::string dataset_names(const config::Json& tree) {
  const config::Json::json_pointer place("/data/datasets");
  std::vector<std::string> names;
  if (!tree.contains(place) || !tree.at(place).is_object()) return "";
  for (const auto& [name, dataset] : tree.at(place).items())
    names.push_back(name);
  return join(names);
}

}  // namespace

std::vector<std::string> network_differences(const std::string& config_json, RunConfig& config) {
  const config::Json before = completed(config_json),
                     now = config::write_object(config::fields_of(config));
  std::vector<std::string> found;
  if (config.model.aggregation == model::Aggregation::kConcat &&
      dataset_names(before) != dataset_names(now)) {
    found.push_back(
        concat("data.datasets were ", dataset_names(before), " and are ", dataset_names(now)));
  }
  for (const std::string& path : differing_keys(config_json, config)) {
    if (shapes_function(path))
      found.push_back(
          concat(path, " was ", value_at(before, path), " and is ", value_at(now, path)));
  }
  return found;
}

std::vector<std::string> score_keys(const std::string& config_json, RunConfig& config) {
  std::vector<std::string> found;
  for (const std::string& path : differing_keys(config_json, config)) {
    const bool counts = path.starts_with("loss.") || path.starts_with("train.validation.") ||
                        path == "train.precision" || path == "model.ensemble.members" ||
                        (path.starts_with("data.") && !path.starts_with("data.training") &&
                         path != "data.batch_size" && path != "data.anemoi_workers");
    if (counts && !shapes_function(path)) found.push_back(path);
  }
  return found;
}

std::vector<std::string> all_keys() {
  RunConfig defaults;
  std::vector<std::string> keys;
  add_keys(config::write_object(config::fields_of(defaults)), "", keys);
  return keys;
}

std::string schema_json() {
  RunConfig config;
  return config::json_schema(config::fields_of(config), "aifs-train configuration").dump(2) + "\n";
}

std::string reference_markdown() {
  RunConfig config;
  return config::markdown(config::fields_of(config));
}

}  // namespace aifs::app
