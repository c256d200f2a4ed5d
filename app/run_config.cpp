// SPDX-License-Identifier: Apache-2.0
#include "app/run_config.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_io.h"

namespace aifs::app {

namespace {

// Keys that change how a run is carried out, not what it computes.
constexpr std::array<const char*, 8> kNotHashed{
    "/run/dir", "/run/mode",   "/run/log_level", "/log",
    "/profile", "/checkpoint", "/data/threads",  "/data/prefetch_batches"};

void check_together(const RunConfig& c) {
  if (c.data.kind == data::SourceKind::kAnalytic && c.graph.grid == "dataset") {
    throw ConfigError("graph.grid", "the analytic dataset has no grid of its own",
                      "name one, for example \"o16\"");
  }
  if (c.data.kind == data::SourceKind::kAnemoi && c.data.dataset.dataset.empty()) {
    throw ConfigError("data.dataset.dataset", "no dataset is named",
                      "give the path of a .zarr folder, or set data.kind to \"analytic\"");
  }
  constexpr int64_t kMembers = 1;  // that the network predicts
  c.loss.check(kMembers, c.data.multistep_output);
}

}  // namespace

void RunOptions::bind(config::Binder& b) {
  b.text("dir", dir,
         {"folder of all output, relative to where the program is started; created if needed"});
  b.integer("seed", seed, {.min = 0}, {"base of all random numbers: weights and sample order"});
  b.choice("mode", mode, {"train, or only validate the latest checkpoint"});
  b.integer("threads", threads, {.min = 0, .max = 4096},
            {"CPU threads for arithmetic; 0: OMP_NUM_THREADS or all cores"});
  b.choice("log_level", log_level, {"least important messages that are shown"});
}

void RunOptions::validate(const std::string& path) const {
  if (dir.empty()) throw ConfigError(path + ".dir", "is empty");
}

void ParallelOptions::bind(config::Binder& b) {
  b.integer("model", model, {.min = 1, .max = 1 << 20}, {"ranks that share one sample"});
  b.integer("data", data, {.min = 1, .max = 1 << 20}, {"replicas of the model"});
}

void ParallelOptions::validate(const std::string& path) const {
  if (model != 1) throw ConfigError(path + ".model", "this version runs on one rank only");
  if (data != 1) throw ConfigError(path + ".data", "this version runs on one rank only");
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

RunConfig load_config(const std::string& file, const std::vector<std::string>& overrides) {
  RunConfig config;
  const std::vector<config::Field> fields = config::fields_of(config);
  config::Json tree = config::load_file(file, fields);
  config::ReadContext context;
  for (const std::string& assignment : overrides) {
    config::apply_override(tree, assignment, fields, context);
  }
  config::read_object(fields, tree, "", context);
  check_together(config);
  return config;
}

std::string effective_json(RunConfig& config) {
  return config::write_object(config::fields_of(config)).dump(2) + "\n";
}

std::string config_hash(RunConfig& config) {
  config::Json tree = config::write_object(config::fields_of(config));
  for (const char* path : kNotHashed) {
    const config::Json::json_pointer pointer(path);
    tree[pointer.parent_pointer()].erase(pointer.back());
  }
  for (const char* key : {"max_steps", "max_epochs", "max_minutes", "validation"}) {
    tree["train"].erase(key);
  }
  return sha256_hex(std::string_view(tree.dump()));
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
