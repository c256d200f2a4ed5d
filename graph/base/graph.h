// SPDX-License-Identifier: Apache-2.0
// A graph as plain arrays: node sets with coordinates, edge sets between them, attributes of both.
// Free of LibTorch. Built by graph/builder.h, stored by graph/graph_file.h, turned into tensors by
// model/nodes/graph_tensors.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace aifs::graph {

// Values per node or edge, row-major (rows, width), fp32.
struct Attribute {
  int64_t width = 1;
  std::vector<float> values;
};

struct NodeSet {
  std::string name;
  std::vector<float> lat_rad, lon_rad;  // (N)
  std::map<std::string, Attribute> attributes;

  int64_t num_nodes() const { return static_cast<int64_t>(lat_rad.size()); }
};

// Directed edges source -> target, in the order of the builder (not sorted).
struct EdgeSet {
  std::string source, target;                       // names of node sets
  std::vector<int32_t> source_index, target_index;  // (M)
  std::map<std::string, Attribute> attributes;

  int64_t num_edges() const { return static_cast<int64_t>(source_index.size()); }
};

struct Graph {
  std::vector<NodeSet> node_sets;
  std::vector<EdgeSet> edge_sets;

  // Throw Error naming what there is if the set does not exist.
  const NodeSet& nodes(const std::string& name) const;
  const EdgeSet& edges(const std::string& source, const std::string& target) const;

  // SHA-256 over names, coordinates, indices and attributes: equal hashes, equal graphs.
  std::string content_hash() const;
  // Checks index ranges and attribute sizes; throws Error naming the set.
  void check() const;
};

// Names in graphs become those of groups and variables of the graph file: up to 100 letters,
// digits, _ - and ., the first a letter, a digit or _. Both throw ConfigError naming `path` for
// other names and for those that the file uses itself: "_to_" in the name of a node set; latitude,
// longitude, source_index and target_index as attributes.
void check_set_name(const std::string& name, const std::string& path);
void check_attribute_name(const std::string& name, const std::string& path);

}  // namespace aifs::graph
