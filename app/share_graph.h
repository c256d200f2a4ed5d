// SPDX-License-Identifier: Apache-2.0
// One rank builds or reads the graph, all others get it from there: no file is opened by every rank
// at once, and the time it takes does not grow with their number.
#pragma once

#include "graph/graph.h"
#include "parallel/communicator.h"

namespace aifs::app {

// Replaces the graph of every rank by that of rank 0. Collective.
void share_graph(graph::Graph& graph, parallel::Communicator& world);

}  // namespace aifs::app
