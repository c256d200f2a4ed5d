// SPDX-License-Identifier: Apache-2.0
// The whole configuration: one options struct per section, read from a file, checked together.
#pragma once

#include <string>
#include <vector>

#include "core/config.h"
#include "data/options.h"
#include "graph/options.h"
#include "graph/partition.h"
#include "model/network/options.h"
#include "parallel/process_mesh.h"
#include "train/options.h"
#include "train/sharding/sharding.h"

namespace aifs::app {

enum class DeviceChoice { kAuto, kCpu, kCuda };
enum class Mode { kTrain, kValidate, kIo, kSynthetic };
enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct RunOptions {
  std::string dir = "runs/default";
  int64_t seed = 42;
  DeviceChoice device = DeviceChoice::kAuto;
  Mode mode = Mode::kTrain;
  int64_t threads = 0;
  LogLevel log_level = LogLevel::kInfo;

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

struct ParallelOptions {
  parallel::MeshSizes sizes;
  std::vector<int64_t> stage_layers = {};  // of each stage; none: shared out evenly
  train::ShardingOptions sharding;
  train::ReductionOptions gradients;
  graph::HiddenOrder hidden_order = graph::HiddenOrder::kAuto;
  graph::SourceRows mapper_sources = graph::SourceRows::kHalo;
  model::AttentionSharing attention = model::AttentionSharing::kAuto;
  double timeout_s = 60.0;
  bool reproducible = false;
  int64_t virtual_ranks = 8;

  void bind(config::Binder& b);
};

struct RunConfig {
  RunOptions run;
  data::DataOptions data;
  graph::GraphOptions graph;
  model::ModelOptions model;
  train::LossOptions loss;
  train::TrainOptions train;
  train::OptimizerOptions optimizer;
  train::InitOptions init;
  ParallelOptions parallel;
  train::CheckpointOptions checkpoint;
  train::LogOptions log;
  train::ProfileOptions profile;

  void bind(config::Binder& b);
};

// Reads `file`, applies the overrides in order, checks every value and what must hold between
// sections. Throws ConfigError.
RunConfig load_config(const std::string& file, const std::vector<std::string>& overrides);

// Reads one from the text of an effective configuration, as checkpoints keep it.
RunConfig parse_config(const std::string& json, const std::vector<std::string>& overrides);

// How many processor layers each stage of the pipeline has.
std::vector<int64_t> layers_of_stages(const RunConfig& config);

// True if the graph is a given one, or the network works on meshes that section "graph" does not
// make: they come from graph.file.
bool needs_graph_file(const RunConfig& config);

// The order of hidden nodes on ranks. Attention works in node order, and a window of it sees little
// of other ranks if these have ranges: auto is that for a Transformer.
graph::HiddenOrder hidden_order(const RunConfig& config);

// The effective configuration with all defaults, as JSON text.
std::string effective_json(RunConfig& config);
// Hash of what determines the numbers of a run: everything but run.dir, log, profile, checkpoint
// cadence, loader threads and how long to train (but the end of a cosine counts).
std::string config_hash(RunConfig& config);
// The paths of what goes into that hash and differs from an effective configuration written before.
std::vector<std::string> differing_keys(const std::string& config_json, RunConfig& config);
// Those of them that make another function of the same weights, with both values: "model.residual
// was ... and is ...". What the older program did not know counts as its default.
std::vector<std::string> network_differences(const std::string& config_json, RunConfig& config);
// Those of them that change scores of the same weights.
std::vector<std::string> score_keys(const std::string& config_json, RunConfig& config);
// The keys of a configuration that have a value of their own, as --set takes them.
std::vector<std::string> all_keys();
std::string schema_json();
std::string reference_markdown();

constexpr auto enum_table(DeviceChoice) {
  using enum DeviceChoice;
  return std::to_array<EnumName<DeviceChoice>>({{kAuto, "auto"}, {kCpu, "cpu"}, {kCuda, "cuda"}});
}

constexpr auto enum_table(Mode) {
  using enum Mode;
  return std::to_array<EnumName<Mode>>(
      {{kTrain, "train"}, {kValidate, "validate"}, {kIo, "io"}, {kSynthetic, "synthetic"}});
}

constexpr auto enum_table(LogLevel) {
  using enum LogLevel;
  return std::to_array<EnumName<LogLevel>>(
      {{kDebug, "debug"}, {kInfo, "info"}, {kWarning, "warning"}, {kError, "error"}});
}

}  // namespace aifs::app
