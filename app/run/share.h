// SPDX-License-Identifier: Apache-2.0
// One rank builds or reads the graph and opens the dataset, all others get from there what they
// need: no file is opened by every rank at once, and the time it takes does not grow with their
// number.
#pragma once

#include <string>

#include "graph/base/graph.h"
#include "parallel/communicator.h"

namespace aifs::app {

// Replaces the graph of every rank by that of rank 0. Collective.
void share(graph::Graph& graph, parallel::Communicator& world);
// Shares bytes in the same way.
void share(std::string& bytes, parallel::Communicator& world);

}  // namespace aifs::app
