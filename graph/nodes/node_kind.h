// SPDX-License-Identifier: Apache-2.0
// What a kind of nodes is: the options that only it reads, what they must hold, and the nodes that
// they make. docs/extending.md shows how to add one; the table of all is node_kinds.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/tagged.h"
#include "graph/nodes/mesh_nodes.h"

namespace aifs::graph {

// Nodes that are being made.
struct NodePlace {
  std::string path;                                // JSON path of the node set
  std::string name;                                // of the node set
  const std::map<std::string, MeshNodes>& before;  // sets that stand before it
  const Coordinates* cells = nullptr;              // of the dataset of this name, if there is one
  std::vector<int64_t> grids = {};                 // its grids
  DegreeArithmetic arithmetic = DegreeArithmetic::kFloat64;  // for degrees
  int64_t threads = 0;

  // A set of this name at these degrees. Throws DataError naming the set for coordinates that are
  // no latitudes and longitudes, and where there are none.
  NodeSet at_degrees(const Coordinates& degrees) const;
};

struct AreaOptions;

class NodeKind {
 public:
  virtual ~NodeKind() = default;

  // Declares the options that this kind reads.
  virtual void bind(config::Binder&) {}
  // Throws ConfigError for options that do not go together; `path` is that of the node set.
  virtual void validate(const std::string& /*path*/) const {}
  // Throws ConfigError for options that do not fit the nodes before, DataError for files.
  virtual MeshNodes make(const NodePlace& place) const = 0;
  // Their number, where it is known without making them.
  virtual std::optional<int64_t> num_nodes() const { return std::nullopt; }
  // Refinements of the icosahedron that its mesh has; nothing if it is no such mesh.
  virtual std::optional<int64_t> refinement() const { return std::nullopt; }
  // The file that the nodes are read from, which a kind calls "file"; empty: none.
  virtual std::string coordinate_file() const { return ""; }
  // The area that the nodes are limited to or refined in; nullptr if there is none.
  virtual const AreaOptions* limits() const { return nullptr; }

  // All kinds, in the order in which they are documented; the first is the default.
  static const std::vector<config::Kind<NodeKind>>& kinds();
};

// The area around the nodes of a set that stands before.
struct AreaOptions {
  std::string reference = "data";
  std::string mask;
  double margin_km = 100.0;

  void bind(config::Binder& b);
  // Throws ConfigError if the set or its mask is not there, or selects no node.
  std::shared_ptr<const AreaMask> make(const NodePlace& place) const;
};

// The nodes of a set inside an area, in their order; what the set knows of its mesh is left out but
// for the area.
MeshNodes limited_to(std::shared_ptr<const AreaMask> area, const MeshNodes& nodes);

}  // namespace aifs::graph
