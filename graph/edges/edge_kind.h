// SPDX-License-Identifier: Apache-2.0
// What a kind of edges is: the options that only it reads, what they must hold, and the edges that
// they make. docs/extending.md shows how to add one; the table of all is edge_kinds.cpp.
#pragma once

#include <string>
#include <vector>

#include "core/peers.h"
#include "core/tagged.h"
#include "graph/base/edge_list.h"
#include "graph/nodes/mesh_nodes.h"

namespace aifs::graph {

// Edges that are being made. The two may be one set.
struct EdgePlace {
  std::string path;  // JSON path of the builder
  const MeshNodes& source;
  const MeshNodes& target;
  int64_t threads = 0;     // 0: all of the machine
  Peers* peers = nullptr;  // who divide the search; null: all of it is done here

  bool within_one_set() const { return source.set.name == target.set.name; }
};

class EdgeKind {
 public:
  virtual ~EdgeKind() = default;

  // Declares the options that this kind reads.
  virtual void bind(config::Binder&) {}
  // Throws ConfigError for options that do not go together; `path` is that of the builder.
  virtual void validate(const std::string& /*path*/) const {}
  // Throws ConfigError for nodes that have no such edges, as far as that can be told without a
  // search: by their numbers, and by the mesh that they are of. Places are not looked at.
  virtual void check(const EdgePlace&) const {}
  // After check(). Deterministic, whatever the number of threads. Throws ConfigError for options
  // that do not fit the nodes, on all peers if there are any.
  virtual EdgeList make(const EdgePlace& place) const = 0;
  // True if make() gives a rank its part of the edges where there are peers: the parts of all, one
  // after another, are what it gives without. Else it gives all edges to each.
  virtual bool divides() const { return false; }
  // True if it makes no edges at all.
  virtual bool is_none() const { return false; }

  // All kinds, in the order in which they are documented; the first is the default.
  static const std::vector<config::Kind<EdgeKind>>& kinds();
};

}  // namespace aifs::graph
