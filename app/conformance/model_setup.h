// SPDX-License-Identifier: Apache-2.0
// Builds graph, network, loss and optimiser of a reference case from its JSON file.
#pragma once

#include "app/conformance/case_file.h"
#include "data/variables.h"
#include "graph/graph.h"
#include "model/encoder_processor_decoder.h"
#include "train/loss.h"

namespace aifs::conformance {

// The roles listed under "variables".
data::VariableTable variables_of(const Json& json);
// The statistics/* tensors of a case.
data::Statistics statistics_of(const SafetensorsFile& tensors, const std::string& prefix);
// The graph named by "graph_file", looked for beside the case and in the folders above it.
graph::Graph graph_of(const CaseFile& file);
// A bounding layer by its class name in Anemoi.
model::BoundingOptions bounding_options(const std::string& class_name, const Json& json);
// Options of the network. Throws NotSupported for parts that are not built yet.
model::ModelOptions model_options(const Json& json);
model::FieldLayout field_layout(const Json& json, const data::VariableTable& variables,
                                const data::Statistics& statistics);
// Scalers named by `names`, from the scaler/* tensors, in that order.
std::vector<train::Scaler> stored_scalers(const SafetensorsFile& tensors, const Json& names,
                                          at::ScalarType dtype);

// A network with the weights of a case.
struct CaseModel {
  model::ParameterSet parameters;
  std::unique_ptr<model::EncoderProcessorDecoder> network;

  CaseModel(const CaseFile& file, const SafetensorsFile& tensors, at::ScalarType dtype);
};

}  // namespace aifs::conformance
