// SPDX-License-Identifier: Apache-2.0
// A graph in one NetCDF-4 file that explains itself (ncdump -h): groups nodes/<set> and
// edges/<source>_to_<target> with coordinates, indices and attributes as variables. Plain and
// uncompressed, so that big graphs load at the speed of the disk.
#pragma once

#include <string>

#include "core/file_io.h"
#include "graph/base/graph.h"
#include "graph/graph_slice.h"

namespace aifs::graph {

// Stands in place of the hash of options where no options of ours made the graph.
constexpr const char* kGivenGraph = "given";

struct StoredGraph {
  Graph graph;
  std::string options_hash;  // build_hash() of what it was built of, as given to save_graph()
  std::string content_hash;  // of the graph
  std::string origin = {};   // for people: what made a graph that was not built here
};

// Writes beside `path` and renames; returns the content hash of the graph. Throws Error naming the
// file and the variable if the NetCDF library refuses.
std::string save_graph(const fs::path& path, const Graph& graph, const std::string& options_hash,
                       const std::string& origin = {});

// Throws DataError naming the file if it is missing, no such file, or damaged: the content must
// have the hash that is stored with it.
StoredGraph load_graph(const fs::path& path);

// load_graph() without the edges, which are read piece by piece and held against the hash only:
// what stays of their sets are the names of the ends, and of attributes names and widths.
StoredGraph load_outline(const fs::path& path);

// The hash that stands in a file; empty where there is none to be read.
std::string stored_content_hash(const fs::path& path);

// The slice of one rank of `size` of a file that one rank has looked at by load_outline(): nothing
// is held against the hash here, and no more is read. Throws as load_graph().
GraphSlice load_slice(const fs::path& path, int64_t rank, int64_t size);

}  // namespace aifs::graph
