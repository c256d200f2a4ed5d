// SPDX-License-Identifier: Apache-2.0
// Builds graph, network, loss and optimiser of a reference case from its JSON file.
#pragma once

#include "conformance/model_plan.h"
#include "graph/base/graph.h"
#include "model/network/encoder_processor_decoder.h"
#include "train/loss/loss.h"
#include "train/optim/precision.h"

namespace aifs::conformance {

// The roles listed under "variables", of a case with one dataset.
data::VariableTable variables_of(const Json& json);
// The graph named by "graph_file", looked for beside the case and in the folders above it, or the
// one inside the case's own tensors.
graph::Graph graph_of(const CaseFile& file, const SafetensorsFile& tensors);
// Where the network decides about a dataset, (N) bool: the tensor "output_mask", or the attribute
// of its nodes that "output_mask" of the case or of its model names. Undefined: everywhere.
at::Tensor output_mask_of(const CaseFile& file, const SafetensorsFile& tensors,
                          const graph::Graph& graph, const CaseDataset& dataset);

// A network with the weights of a case, whose parameters without gradient are marked as unused.
struct CaseModel {
  model::ParameterSet parameters;
  std::unique_ptr<model::EncoderProcessorDecoder> network;
  graph::Graph graph;

  CaseModel(const CaseFile& file, const SafetensorsFile& tensors, at::ScalarType dtype);
  // With the types of a precision, on a device.
  CaseModel(const CaseFile& file, const SafetensorsFile& tensors, train::Precision precision,
            at::Device device = at::kCPU);
  // Of a configuration, its datasets and a graph; weights under state/ of `tensors`.
  CaseModel(const NetworkConfig& config, const std::vector<app::DataParts>& data,
            const graph::Graph& on, const SafetensorsFile& tensors, at::ScalarType dtype);

  // The nodes of a dataset; null: the graph calls none so.
  const graph::NodeSet* nodes_of(const std::string& dataset) const;

 private:
  void build(const CaseFile& file, const SafetensorsFile& tensors, at::Device device);
  void make(const NetworkConfig& config, const model::NetworkPlan& plan, at::Device device);
  void load(const SafetensorsFile& tensors, at::Device device);
};

}  // namespace aifs::conformance
