// SPDX-License-Identifier: Apache-2.0
// Nodes and edges by their JSON, as configurations ask for them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "graph/options.h"

namespace aifs::graph::samples {

// A section of options from JSON text.
template <class Options>
Options section(const std::string& text, const std::string& path = "x") {
  Options options;
  config::read(options, config::parse_json(text, "test"), path, {});
  return options;
}

using Sets = std::map<std::string, MeshNodes>;

// Nodes of a node set "n".
inline MeshNodes nodes_of(const std::string& text, const Sets& before = {},
                          const Coordinates* cells = nullptr) {
  const auto options = section<NodeSetOptions>(text, "graph.nodes.n");
  return options.kind->make(
      {.path = "graph.nodes.n", .name = "n", .before = before, .cells = cells});
}

// Edges of one builder, after its check.
inline EdgeList edges_of(const std::string& text, const MeshNodes& source,
                         const MeshNodes& target) {
  const auto options = section<EdgeOptions>(text, "graph.edges.0.kinds.0");
  const EdgePlace place{"graph.edges.0.kinds.0", source, target, 1};
  options.kind->check(place);
  return options.kind->make(place);
}

// A set of nodes at these degrees.
inline MeshNodes at_degrees(const std::string& name, const Coordinates& degrees) {
  return {
      .set = {
          name, radians_from_degrees(degrees.lat_deg), radians_from_degrees(degrees.lon_deg), {}}};
}

}  // namespace aifs::graph::samples
