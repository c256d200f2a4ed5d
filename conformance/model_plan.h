// SPDX-License-Identifier: Apache-2.0
// From the JSON of a reference case to a configuration of ours, and from that, as the program does
// it (app/run/network_plan.h), to the plan of its network. What is not understood is NotSupported,
// never ignored.
#pragma once

#include "app/run/data_parts.h"
#include "conformance/case_file.h"
#include "data/fields/dataset.h"
#include "data/fields/variables.h"
#include "graph/base/graph.h"
#include "model/network/options.h"

namespace aifs::conformance {

// A dataset of a case: its variables, and where its tensors are in the file.
struct CaseDataset {
  std::string name;    // "data" if there is one only
  std::string prefix;  // "" or "<name>/"
  data::VariableTable variables;
};
std::vector<CaseDataset> datasets_of(const Json& json);

// The statistics/* tensors of a dataset; empty arrays for those that are not stored.
data::Statistics statistics_of(const SafetensorsFile& tensors, const std::string& prefix);
// A bounding layer by its class name in Anemoi.
model::BoundingOptions bounding_options(const std::string& class_name, const Json& json);

// The sections of a configuration that make a network.
struct NetworkConfig {
  model::ModelOptions model;
  data::DataOptions data;

  // Reads the sections "model" and "data". Throws ConfigError.
  static NetworkConfig read(const Json& sections);
};
// The configuration that a case means. Matrices that it stores are written to `folder`, from where
// the network reads them when it is made.
NetworkConfig network_config(const Json& json, const SafetensorsFile& tensors,
                             const graph::Graph& graph, const fs::path& folder);

// What the program would know of a dataset once it is open, as far as networks look at it. Without
// statistics the thresholds of boundings come with the weights.
app::DataParts data_parts(const CaseDataset& dataset, const data::Statistics& statistics,
                          const data::DataOptions& options);
std::vector<app::DataParts> data_parts(const Json& json, const SafetensorsFile& tensors,
                                       const data::DataOptions& options);

}  // namespace aifs::conformance
