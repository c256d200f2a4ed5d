// SPDX-License-Identifier: Apache-2.0
// The graph of encoder, processor and decoder. In the short form of the options: node sets "data"
// and "hidden", edge sets data->hidden, hidden->hidden, hidden->data; node attribute "area_weight"
// on the data nodes, edge attributes "edge_length" (width 1) and "edge_dirs" (width 2) on all
// edges. In the long form what it lists (graph/recipe.h).
#pragma once

#include <string>
#include <vector>

#include "graph/base/geometry.h"
#include "graph/base/graph.h"
#include "graph/graph_report.h"
#include "graph/graph_slice.h"
#include "graph/options.h"

namespace aifs::graph {

// The cells of one of several datasets, which name its node set.
struct NamedCells {
  std::string name;
  const Coordinates& cells;         // outlive it
  std::vector<int64_t> grids = {};  // cells of each grid of a combined dataset; empty: one grid
  FirstField field = {};            // for attributes that are made of fields; may be empty
};

// `dataset` gives the data nodes if options.grid is "dataset"; with a named grid it may be empty,
// else it must have as many points. Deterministic, whatever the number of threads. `report`, if
// given, is overwritten. Throws ConfigError (paths start with "graph.") for a mesh that is much
// finer than the data, too few nodes for a number of neighbours, or an edge set without edges.
Graph build_graph(const GraphOptions& options, const Coordinates& dataset,
                  GraphReport* report = nullptr);

// The same with a node set for each dataset, and edges of the same kinds from and to it. Each
// mapper has the normalised attributes of its own edges. Several datasets want options.grid
// "dataset".
Graph build_joint_graph(const GraphOptions& options, const std::vector<NamedCells>& datasets,
                        GraphReport* report = nullptr);

// True if ranks can each build a slice: nothing is done of graph.post_process, no nodes or
// fields are read from files, which not every host may have, and no attribute of edges depends on
// the others of a target. `reason`, if given, gets what stands against it.
bool builds_slices(const GraphOptions& options, const std::vector<NamedCells>& datasets,
                   std::string* reason = nullptr);
// The slice of this rank of the graph that build_joint_graph() makes, bit for bit. A rank searches
// for its share of the nodes, and has at no time more than the nodes, its edges, and the two ends
// of edges of kinds that do not divide. Collective; throws as build_joint_graph(), on all ranks.
// Only the times of `report` are filled in.
GraphSlice build_slice(const GraphOptions& options, const std::vector<NamedCells>& datasets,
                       Peers& peers, GraphReport* report = nullptr);

// What build_graph() would make, by name and number: data nodes in their places, hidden ones at no
// place where their number is known without making them, edge sets without edges, attributes but
// masks without values. Nothing is done of graph.post_process. Throws as build_graph() does for
// what can be told without searching for edges: sizes, meshes, coordinates, nodes that share a
// place. A grid of millions of nodes takes seconds.
Graph graph_outline(const GraphOptions& options, const Coordinates& dataset);
Graph joint_graph_outline(const GraphOptions& options, const std::vector<NamedCells>& datasets);

// The cells of each dataset as nodes, without attributes.
std::vector<NodeSet> graph_data_nodes(const GraphOptions& options,
                                      const std::vector<NamedCells>& datasets);

}  // namespace aifs::graph
