// SPDX-License-Identifier: Apache-2.0
// From the JSON of a reference case to the plan of its network. Two layouts exist: parts named
// "encoder", "processor", "decoder", and Anemoi's own with named maps of encoders and decoders.
// What is not understood is NotSupported, never ignored.
#pragma once

#include "conformance/case_file.h"
#include "data/fields/dataset.h"
#include "data/fields/variables.h"
#include "model/network/encoder_processor_decoder.h"

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

model::NetworkPlan network_plan(const Json& json, const SafetensorsFile& tensors,
                                const graph::Graph& graph);
// The edge attributes that the parts use, in column order.
std::vector<std::string> edge_attributes_of(const Json& json);

}  // namespace aifs::conformance
