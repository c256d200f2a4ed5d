// SPDX-License-Identifier: Apache-2.0
// Whether a graph has the nodes and edges that a network works on.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "app/run/run_config.h"
#include "data/options.h"
#include "graph/base/graph.h"
#include "graph/graph_report.h"
#include "graph/unconnected.h"
#include "model/network/options.h"

namespace aifs::app {

// Throws ConfigError naming the option that asks for what the graph has not, and as below.
// `data` says which datasets there are, and which mappers they have.
void check_graph(const model::ModelOptions& model, const graph::Graph& graph,
                 const data::DataOptions& data = {});

// (N) bool, true for the cells of a dataset that the network decides; undefined: all. Throws
// ConfigError for an attribute that the nodes have not, or that marks none.
at::Tensor output_mask(const model::ModelOptions& model, const data::DataOptions& data,
                       size_t dataset, const graph::Graph& graph);

// Takes cells that are given, those outside an output mask, out of nodes that no edge reaches. The
// graph may lack datasets that none of the nodes are of.
void leave_out_given(std::vector<graph::UnconnectedNodes>& all, const RunConfig& config,
                     const graph::Graph& graph);
// The warnings of a graph, with those of cells without a forecast for the cells that the network
// decides.
std::vector<std::string> graph_warnings(const RunConfig& config, const graph::Graph& graph,
                                        const graph::GraphReport& report);

// (N) bool, true for the cells of a dataset that are in train.validation.region; undefined: there
// is none, or of several datasets this one's nodes have no such attribute. One of them must have
// it. Throws ConfigError as output_mask().
at::Tensor validation_region(const RunConfig& config, const graph::Graph& graph, size_t dataset);

// Throws ConfigError for an attention window that is wider than all nodes in a row; `num_nodes`
// gives their number by the name of the set. A processor on several meshes has one window, which
// must make a difference on the finest.
void check_windows(const model::ModelOptions& model,
                   const std::function<int64_t(const std::string&)>& num_nodes,
                   const data::DataOptions& data = {});

}  // namespace aifs::app
