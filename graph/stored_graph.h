// SPDX-License-Identifier: Apache-2.0
// Graphs that are built once and kept: in the file that graph.file names, or in the folder
// graph.cache under a name that is the hash of all that they are built of.
//
// Any number of processes may ask for one graph at once. A file has its name only when it is
// complete; who finds none builds it, and the last one to finish puts equal content in place of
// equal content. On a file system that cannot rename, readers may see a part: such a file does not
// have the hash that is stored in it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/builder.h"

namespace aifs::graph {

// What a graph file is known by: options_hash(), and where datasets are combined of grids the sizes
// of these, which masks of nodes depend on, and the fields that attributes are made of. A named
// grid is one grid.
std::string build_hash(const GraphOptions& options, const std::vector<NamedCells>& datasets);

// The file that the graph would be loaded from, as load_or_build_joint_graph() would; empty if
// there is none.
std::string stored_graph(const GraphOptions& options, const std::vector<NamedCells>& datasets);

// A graph in a file, whose edges stay there (load_outline()).
struct StoredOutline {
  std::string file;
  Graph graph;  // edge sets without edges
  std::string content_hash;
};

// Where a graph that is built is stored, and its build_hash(); no file: nowhere.
struct PlaceOfGraph {
  std::string file, options_hash;
};

// Checks the file that load_or_build_joint_graph() would load as that does, and takes no edges from
// it, so that each rank can read its own (load_slice()). Nothing if there is none: the graph is to
// be built, or built again, and stored at `place`. Throws as load_or_build_joint_graph().
std::optional<StoredOutline> find_stored_graph(const GraphOptions& options,
                                               const std::vector<NamedCells>& datasets,
                                               PlaceOfGraph* place = nullptr);

// Tries whether the file can be written, which is known before the graph is built, and removes what
// writers left that were interrupted. Throws Error.
void prepare_place(const PlaceOfGraph& place);

// Loads options.file if it exists, and checks that it was made with these options for these data
// nodes and grids (ConfigError otherwise); else builds the graph and, if a file is named, saves it
// there. DataError for a file that is damaged. With options.cache the file is the one in that
// folder for these options, cells and grids, and is built again if it is damaged.
Graph load_or_build_graph(const GraphOptions& options, const Coordinates& dataset,
                          GraphReport* report = nullptr);
Graph load_or_build_joint_graph(const GraphOptions& options,
                                const std::vector<NamedCells>& datasets,
                                GraphReport* report = nullptr);

}  // namespace aifs::graph
