// SPDX-License-Identifier: Apache-2.0
// Whole graphs: built from the options in the JSON, compared with the stored tensors. Attributes are
// compared on the stored edges, so that a tie which was decided otherwise does not spoil the
// statistics of a norm.
#include <cmath>
#include <functional>

#include "app/conformance/cases.h"
#include "app/conformance/graph_compare.h"
#include "app/conformance/graph_summary.h"
#include "graph/builder.h"
#include "graph/gaussian_grid.h"
#include "graph/icosphere.h"
#include "graph/neighbour_edges.h"

namespace aifs::conformance {

namespace {

constexpr double kCoordinateLimit = 1e-6;
constexpr double kShortEdge = 1e-3;  // radians; directions of shorter edges are rounding noise

// A graph case in one form, whichever file it comes from.
struct GraphCase {
  struct Edges {
    std::string source, target;
    Json builders, attributes;
  };
  std::map<std::string, CaseNodes> nodes;  // ours
  std::vector<int64_t> grids;              // sizes of a combined data set
  std::map<std::string, Json> node_attributes;
  std::vector<Edges> edges;
};

bool at_south_pole(const graph::NodeSet& nodes, int32_t node) {
  return nodes.lat_rad[static_cast<size_t>(node)] < -1.570796F;
}

struct AttributeLimits {
  double float32, float64, float64_with_pole;
};

AttributeLimits limits_of(const std::string& name) {
  if (name == "EdgeLength") return {5e-5, 1e-12, 1e-12};
  if (name == "EdgeDirection") return {2e-4, 1e-12, 4e-6};
  if (name == "GaussianDistanceWeights") return {1e-5, 1e-12, 1e-12};
  throw NotSupported(concat("edge attribute ", name));
}

// Where float64 arithmetic of the reference turns directions by 180 degrees, and where directions
// have no meaning.
struct EdgeFilter {
  bool has_pole_target = false;
  std::vector<bool> is_long, is_away_from_pole;

  EdgeFilter(const graph::EdgeEnds& ends) {
    for (const double length : graph::edge_length<double>(ends))
      is_long.push_back(length > kShortEdge);
    for (const int32_t target : ends.target_index) {
      is_away_from_pole.push_back(!at_south_pole(ends.target, target));
      has_pole_target = has_pole_target || !is_away_from_pole.back();
    }
  }
};

void compare_attributes(Comparison& comparison, const SafetensorsFile& tensors,
                        const std::string& pair, const Json& attributes,
                        const graph::EdgeEnds& ends) {
  if (ends.num_edges() == 0) return;
  const EdgeFilter filter(ends);
  for (const auto& [name, attribute] : attributes.items()) {
    const std::string tensor = concat("edges/", pair, "/", name);
    const std::string kind = class_name(attribute);
    const AttributeLimits limits = limits_of(kind);
    const bool only_long = kind == "EdgeDirection";
    comparison.add(tensor,
                   largest_difference(edge_attribute<float>(attribute, ends), tensors, tensor,
                                      [&](size_t e) { return !only_long || filter.is_long[e]; }),
                   limits.float32);
    if (!tensors.contains("f64/" + tensor)) continue;
    comparison.add("f64/" + tensor,
                   largest_difference(edge_attribute<double>(attribute, ends), tensors,
                                      "f64/" + tensor,
                                      [&](size_t e) {
                                        return !only_long ||
                                               (filter.is_long[e] && filter.is_away_from_pole[e]);
                                      }),
                   filter.has_pole_target ? limits.float64_with_pole : limits.float64);
  }
}

void compare_node_attributes(Comparison& comparison, const SafetensorsFile& tensors,
                             CaseNodes& nodes, const Json& attributes,
                             const std::vector<int64_t>& grids) {
  for (const auto& [name, attribute] : attributes.items()) {
    const std::string tensor = concat("nodes/", nodes.set.name, "/", name);
    const auto values = node_attribute<float>(attribute, nodes.set, grids);
    nodes.set.attributes[name] = {1, values};
    comparison.add(tensor, largest_relative_difference(values, tensors, tensor), 1e-6);
  }
}

void compare_case(Comparison& comparison, const SafetensorsFile& tensors, GraphCase& graph) {
  std::map<std::string, graph::NodeSet> stored;
  std::map<std::string, std::vector<int32_t>> number;
  for (auto& [name, nodes] : graph.nodes) {
    stored[name] = read_node_set(tensors, concat("nodes/", name, "/latlon_rad"), name);
    if (nodes.mesh) {
      number[name] = match_nodes(nodes.set, stored[name], kCoordinateLimit);
    } else {
      compare_coordinates(comparison, name, nodes.set, stored[name], kCoordinateLimit);
      number[name] = graph::level_range_of_nodes(nodes.set.num_nodes());
    }
    compare_node_attributes(comparison, tensors, nodes, graph.node_attributes[name], graph.grids);
  }
  for (const GraphCase::Edges& edges : graph.edges) {
    const std::string pair = edges.source + "_to_" + edges.target;
    const CaseNodes &source = graph.nodes.at(edges.source), &target = graph.nodes.at(edges.target);
    BuiltEdges built = build_edges(edges.builders, source, target);
    const auto &from = number.at(edges.source), &to = number.at(edges.target);
    built.edges = renumbered(built.edges, from, to);
    for (Search& search : built.searches)
      search.edges = renumbered(search.edges, from, to);
    built.has_order = false;  // node numbers differ
    const auto list = read_edge_list(tensors, concat("edges/", pair, "/edge_index"));
    compare_edges(comparison, pair, built, list, stored.at(edges.source), stored.at(edges.target));
    compare_attributes(comparison, tensors, pair, edges.attributes,
                       {stored.at(edges.source), stored.at(edges.target), list.source_index,
                        list.target_index});
  }
}

}  // namespace

}  // namespace aifs::conformance
