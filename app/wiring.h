// SPDX-License-Identifier: Apache-2.0
// The composition root: from a configuration to datasets, graph, network, loss and validation, and
// the actions of the command line on them.
#pragma once

#include <memory>
#include <string>

#include "app/run_config.h"
#include "graph/graph.h"
#include "graph/graph_report.h"
#include "train/trainer.h"

namespace aifs::app {

// Training and validation data, normalised alike (statistics are those of the training data).
struct DataParts {
  std::shared_ptr<const data::Dataset> training, validation;
  data::VariableTable variables;
  data::Statistics statistics;  // after the normaliser's remap
  data::SampleSource training_source, validation_source;
  train::Window window;
  int64_t timestep_s = 0;
};

struct GraphParts {
  graph::Graph graph;
  graph::GraphReport report;
  std::string hash;
  double seconds = 0.0;
};

// <run.dir>/checkpoints.
fs::path checkpoint_folder(const RunConfig& config);

// Everything a run needs, in the order it is built.
class Run {
 public:
  // Opens the data, builds or loads the graph, creates network, loss and validation; writes nothing
  // but the graph file. Throws ConfigError, DataError.
  explicit Run(RunConfig config);

  // Trains (from a checkpoint if given).
  train::Outcome train(const std::optional<train::CheckpointInfo>& resume_from);
  // Scores the weights of a checkpoint; prints a table and writes
  // <run.dir>/validation-step-<n>.json.
  void validate(const train::CheckpointInfo& checkpoint);

  const RunConfig& config() const { return config_; }
  const DataParts& data() const { return data_; }
  const GraphParts& graph() const { return graph_; }
  const model::ParameterSet& parameters() const { return *parameters_; }
  const train::Loss& loss() const { return *loss_; }

 private:
  train::LossPtr make_loss() const;
  std::unique_ptr<train::Validation> make_validation() const;
  train::CheckpointMeta checkpoint_meta();

  RunConfig config_;
  DataParts data_;
  GraphParts graph_;
  std::unique_ptr<model::ParameterSet> parameters_;
  std::unique_ptr<model::EncoderProcessorDecoder> network_;
  train::LossPtr loss_;
  std::unique_ptr<train::Validation> validation_;
};

// Checks what can be checked without building a graph or training: names of variables, periods,
// statistics, boundings. Data that are not on this machine are not opened; the text says so.
// Throws ConfigError or DataError for the first fault.
std::string check_config(const RunConfig& config);

}  // namespace aifs::app
