// SPDX-License-Identifier: Apache-2.0
// Whether a graph has the nodes and edges that a network works on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/base/graph.h"
#include "model/network/options.h"

namespace aifs::app {

// Throws ConfigError naming the option that asks for what the graph has not, and as below.
// `datasets` are the names of their node sets.
void check_graph(const model::ModelOptions& model, const graph::Graph& graph,
                 const std::vector<std::string>& datasets = {"data"});

// Throws ConfigError for an attention window that is wider than all nodes in a row; `num_nodes`
// gives their number by the name of the set. A processor on several meshes has one window, which
// must make a difference on the finest.
void check_windows(const model::ModelOptions& model,
                   const std::function<int64_t(const std::string&)>& num_nodes,
                   const std::vector<std::string>& datasets = {"data"});

}  // namespace aifs::app
