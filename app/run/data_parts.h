// SPDX-License-Identifier: Apache-2.0
// The data of a run: datasets, roles of variables, and the tables between physical and normalised
// values, which are those of a checkpoint where its weights are used.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/run/data_stores.h"
#include "app/run/run_config.h"
#include "data/data_record.h"
#include "data/loader/data_loader.h"
#include "data/loader/sampler.h"
#include "data/transforms/post_processor.h"
#include "parallel/process_mesh.h"
#include "train/output/checkpoint.h"
#include "train/rollout.h"

namespace aifs::app {

// Training and validation data, normalised alike (statistics are those of the training data).
struct DataParts {
  std::string name = "data";  // of its nodes, encoder and decoder
  std::shared_ptr<const data::Dataset> training, validation;
  data::VariableTable variables;
  data::Statistics statistics;                     // after the normaliser's remap
  std::map<int64_t, data::Statistics> tendencies;  // by time difference in seconds
  data::SampleSource training_source, validation_source;
  data::PostProcessor post_processor;  // of the outputs
  data::DataRecord record;             // for checkpoints
  train::Window window;
  int64_t timestep_s = 0;
  std::vector<std::string> warnings;         // for one rank to say
  std::shared_ptr<const DataStores> stores;  // null: data that are no files
};

// What weights of a checkpoint are wanted for. Going on with a run and scoring weights need the
// tables that they were trained with; a new run may start from them with tables of its own.
enum class WeightUse { kResume, kScore, kStart };

// What a checkpoint says of the data that its weights belong to.
struct SavedData {
  WeightUse use = WeightUse::kResume;
  std::string checkpoint;                       // for messages
  std::optional<data::DataRecord> record = {};  // none: written by a program that kept none
  std::map<std::string, data::DataRecord> datasets = {};  // instead of it, of a run of several
  int64_t times_in = 1, times_out = 1;                    // of inputs and outputs of a step
};

SavedData saved_data(WeightUse use, const train::CheckpointInfo& checkpoint);
// As text and back, to be given to other ranks; an empty text is none.
std::string to_text(const std::optional<SavedData>& saved);
std::optional<SavedData> saved_data_from_text(const std::string& text);

// Opens the data of a configuration from its stores; null for those that are no files. With
// `saved`, the tables are those that data.tables chooses; what differs from the checkpoint in a way
// that gives its weights another meaning is a DataError (ConfigError where weights of another run
// start a new one) that names each difference, what only changes the course of training is a
// warning. Throws ConfigError, DataError. Local.
DataParts make_data(const RunConfig& config, const std::shared_ptr<DataStores>& stores,
                    const SavedData* saved = nullptr);

// The data of all datasets of a configuration, which have the same dates: one, or those of
// data.datasets in their order. Throws as make_data(), naming the dataset, and DataError for dates
// or datasets that differ from each other, or from those of a checkpoint.
std::vector<DataParts> make_datasets(const RunConfig& config,
                                     const std::shared_ptr<DataStores>& stores,
                                     const SavedData* saved = nullptr);

// Writes what checkpoints keep of them, as JSON: under their names, if the configuration names
// them.
std::string record_of(const RunConfig& config, const std::vector<DataParts>& datasets);

// Throws ConfigError (path "data.datasets") for a configuration of several, where only one dataset
// will do: `what` says why.
void require_one_dataset(const RunConfig& config, const std::string& what, const std::string& hint);

// What differs from a checkpoint, and what training and validation data have to say of themselves
// (which may list their folders), each thing once.
std::vector<std::string> warnings_of(const std::vector<DataParts>& datasets);

// The order of training samples of this rank's replica.
data::SamplerOptions sampling_of(const RunConfig& config, const parallel::ProcessMesh& mesh);

// "12.3 GiB of files were read", by all ranks since they opened the data; "" for data that are no
// files. Collective.
std::string files_read(const DataParts& data, parallel::Communicator& world);

}  // namespace aifs::app
