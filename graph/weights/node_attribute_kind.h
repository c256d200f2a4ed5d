// SPDX-License-Identifier: Apache-2.0
// What a kind of node attribute is: the options that only it reads, and the values that they make.
// The table of all is node_attribute_kinds.cpp.
#pragma once

#include <string>
#include <vector>

#include "core/tagged.h"
#include "graph/nodes/mesh_nodes.h"
#include "graph/weights/normalisation.h"

namespace aifs::graph {

class NodeAttributeKind {
 public:
  virtual ~NodeAttributeKind() = default;

  // Declares the options that this kind reads.
  virtual void bind(config::Binder&) {}
  virtual void validate(const std::string& /*path*/) const {}
  // One value a node, not yet scaled. Throws ConfigError for attributes and grids that the nodes
  // have not, DataError for nodes that have no such values. `path` is that of the attribute.
  virtual std::vector<double> raw(const MeshNodes& nodes, int64_t threads,
                                  const std::string& path) const = 0;
  // How they are scaled; none for masks.
  virtual Norm scaling() const { return Norm::kNone; }
  // True if its values are 0 and 1, so that other nodes and edges can be limited by them.
  virtual bool is_mask() const { return false; }
  // The attributes of the same nodes, listed before, that its values are made of.
  virtual std::vector<std::string> masks_read() const { return {}; }
  // The variables of the dataset that its values are made of.
  virtual std::vector<std::string> fields_read() const { return {}; }
  // Throws as raw() does for nodes that share a place, if that matters.
  virtual void check_places(const MeshNodes&, int64_t /*threads*/) const {}

  // All kinds, in the order in which they are documented; the first is the default.
  static const std::vector<config::Kind<NodeAttributeKind>>& kinds();
};

// Scaled values in fp32 or double. Throws as raw() does, and ConfigError for values that have no
// such norm.
template <class Real>
std::vector<Real> node_values(const NodeAttributeKind& kind, const MeshNodes& nodes,
                              int64_t threads, const std::string& path);

}  // namespace aifs::graph
