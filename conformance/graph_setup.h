// SPDX-License-Identifier: Apache-2.0
// Nodes, edges and attributes that a reference case describes by Anemoi's classes and options. They
// go the way of a configuration: translated (anemoi/graph_section.h), read as options of section
// "graph", and made by the kinds that a run uses.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "anemoi/graph_section.h"
#include "conformance/case_file.h"
#include "graph/base/edge_list.h"
#include "graph/base/graph.h"
#include "graph/edges/edge_attributes.h"
#include "graph/nodes/mesh_nodes.h"
#include "graph/nodes/tri_nodes.h"
#include "graph/options.h"
#include "graph/weights/normalisation.h"

namespace aifs::conformance {

// A node set, and what edge builders want to know about the mesh it was made of.
struct CaseNodes {
  graph::NodeSet set;                   // masks are attributes of 0 and 1
  std::optional<graph::TriNodes> mesh;  // nodes of an icosahedral mesh
  std::vector<int64_t> default_levels;  // of multi-scale edges on it
  int64_t healpix_resolution = 0;       // nodes of a HEALPix grid, if positive
  std::optional<graph::IconNodes> icon = {};

  // A mask attribute as bytes. Throws Error if there is none of this name.
  std::vector<uint8_t> mask(const std::string& name) const;
  // Returns these nodes as builders of edges take them.
  graph::MeshNodes for_builders() const;
};

// The options of one part of a graph that a case defines. Throws NotSupported for what is not built
// here, Error for what makes no sense.
template <class Options>
Options options_of_part(anemoi::GraphPart part, const Json& definition);
// A list of them, for an attribute that is made of masks.
std::vector<std::pair<std::string, graph::NodeAttributeOptions>> node_attribute_options(
    const Json& definition);

// Icosahedral nodes with default levels 0 ... refinement.
CaseNodes make_tri_nodes(const std::string& name, graph::TriNodes mesh);

// The neighbours one search found. An edge whose length equals the limit of its search up to
// rounding may be found or not.
struct Search {
  graph::EdgeList edges;
  bool from_targets = true;      // which side searched
  std::optional<double> radius;  // chord; empty: as many as were asked for
  int64_t max_neighbours = 0;
};

struct BuiltEdges {
  graph::EdgeList edges;
  std::vector<Search> searches;
  bool has_order = false;  // the order of edges is defined, too
  // Vertices of levels above the mesh lie midway between nodes. Which one stands for them, and
  // hence whether it gets an edge to itself, is decided by rounding.
  bool has_undecided_loops = false;
};

// All builders of a list, merged. Throws NotSupported for classes we do not have, Error for options
// that make no sense.
BuiltEdges build_edges(const Json& builders, const CaseNodes& source, const CaseNodes& target);

// "class" or "builder" of an entry.
std::string class_name(const Json& entry);

// The value of `key`, or `otherwise` if it is absent or null.
template <class T>
T value_or(const Json& object, const char* key, T otherwise) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? otherwise : found->template get<T>();
}

// The norm of an attribute; `otherwise` if there is no key "norm", kNone if it is null.
graph::Norm norm_of(const Json& attribute, graph::Norm otherwise);

template <class Real>
using Values = graph::EdgeValues<Real>;

// An edge attribute with its norm.
template <class Real>
Values<Real> edge_attribute(const Json& attribute, const graph::EdgeEnds& ends);
template <>
Values<float> edge_attribute(const Json& attribute, const graph::EdgeEnds& ends);
template <>
Values<double> edge_attribute(const Json& attribute, const graph::EdgeEnds& ends);

// How far the norm of an edge attribute stretches differences (limits.h); of norms by groups, on
// the whole.
double slope_of_norm(const Json& attribute, const graph::EdgeEnds& ends);

// A node attribute with its norm. `grids`: sizes of the grids that the data set was put
// together from; empty: it is one grid.
template <class Real>
std::vector<Real> node_attribute(const Json& attribute, const graph::NodeSet& nodes,
                                 const std::vector<int64_t>& grids);

}  // namespace aifs::conformance
