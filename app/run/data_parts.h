// SPDX-License-Identifier: Apache-2.0
// The data of a run: datasets, roles of variables, and the tables between physical and normalised
// values. make_data() (app/run/make_data.h) makes them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/run/data_stores.h"
#include "app/run/run_config.h"
#include "data/data_record.h"
#include "data/loader/data_loader.h"
#include "data/loader/sampler.h"
#include "data/transforms/post_processor.h"
#include "parallel/process_mesh.h"
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
  // Opens the training data of all dates, whatever the periods; attributes of graphs are of the
  // first one. May be empty.
  std::function<data::DatasetPtr()> open_all_dates = {};
};

// Writes what checkpoints keep of them, as JSON: under their names, if the configuration names
// them.
std::string record_of(const RunConfig& config, const std::vector<DataParts>& datasets);

// Lists differences from a checkpoint, and the warnings of training and validation data (which may
// list their folders), each once.
std::vector<std::string> warnings_of(const std::vector<DataParts>& datasets);

// The order of training samples of this rank's replica.
data::SamplerOptions sampling_of(const RunConfig& config, const parallel::ProcessMesh& mesh);

// "12.3 GiB of files were read", by all ranks since they opened the data; "" for data that are no
// files. Collective.
std::string files_read(const DataParts& data, parallel::Communicator& world);

}  // namespace aifs::app
