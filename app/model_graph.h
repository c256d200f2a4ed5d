// SPDX-License-Identifier: Apache-2.0
// Whether a graph has the nodes and edges that a network works on.
#pragma once

#include "graph/graph.h"
#include "model/options.h"

namespace aifs::app {

// Throws ConfigError naming the option that asks for what the graph has not.
void check_graph(const model::ModelOptions& model, const graph::Graph& graph);

}  // namespace aifs::app
