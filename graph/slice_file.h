// SPDX-License-Identifier: Apache-2.0
// The graph file (graph/graph_file.h) of a graph that is divided over ranks.
#pragma once

#include <string>

#include "core/file_io.h"
#include "core/peers.h"
#include "graph/graph_slice.h"

namespace aifs::graph {

// save_graph() of the whole: the first rank writes, and has no more of the edges than one array of
// its slice and of another. Returns the content hash on every rank. What goes wrong is thrown on
// the first rank when the others have given it all; they return "" then. Collective.
std::string save_slices(const fs::path& path, const GraphSlice& slice,
                        const std::string& options_hash, Peers& peers);

}  // namespace aifs::graph
