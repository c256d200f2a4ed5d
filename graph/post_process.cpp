// SPDX-License-Identifier: Apache-2.0
#include "graph/post_process.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"
#include "graph/base/geometry.h"
#include "graph/edges/edge_attributes.h"

namespace aifs::graph {

namespace {

// The rows `order` of everything, in that order.
template <class T>
void take_rows(std::vector<T>& values, const std::vector<int32_t>& order, int64_t width = 1) {
  const auto columns = static_cast<size_t>(width);
  std::vector<T> taken;
  taken.reserve(order.size() * columns);
  for (const int32_t row : order) {
    const size_t first = static_cast<size_t>(row) * columns;
    for (size_t i = first; i < first + columns; ++i)
      taken.push_back(values[i]);
  }
  values = std::move(taken);
}

void take_rows(std::map<std::string, Attribute>& attributes, const std::vector<int32_t>& order) {
  for (auto& [name, attribute] : attributes)
    take_rows(attribute.values, order, attribute.width);
}

void take_rows(EdgeSet& edges, const std::vector<int32_t>& order) {
  take_rows(edges.source_index, order);
  take_rows(edges.target_index, order);
  take_rows(edges.attributes, order);
}

std::vector<int32_t> positions_of(const std::vector<uint8_t>& keep) {
  std::vector<int32_t> positions;
  for (size_t i = 0; i < keep.size(); ++i) {
    if (keep[i]) positions.push_back(static_cast<int32_t>(i));
  }
  return positions;
}

double positive_degrees(double value) {
  const double turn = std::fmod(value, 360.0);
  return turn < 0 ? turn + 360 : turn;
}

}  // namespace

std::vector<int32_t> keep_nodes(Graph& graph, const std::string& nodes,
                                const std::vector<uint8_t>& keep) {
  AIFS_CHECK(static_cast<int64_t>(keep.size()) == graph.nodes(nodes).num_nodes(), keep.size(),
             " marks for the nodes '", nodes, "'");
  const std::vector<int32_t> kept = positions_of(keep);
  std::vector<int32_t> new_number(keep.size(), -1);
  for (size_t i = 0; i < kept.size(); ++i)
    new_number[static_cast<size_t>(kept[i])] = static_cast<int32_t>(i);
  for (NodeSet& set : graph.node_sets) {
    if (set.name != nodes) continue;
    take_rows(set.lat_rad, kept);
    take_rows(set.lon_rad, kept);
    take_rows(set.attributes, kept);
  }
  for (EdgeSet& edges : graph.edge_sets) {
    std::vector<uint8_t> keep_edge(edges.source_index.size(), 1);
    const auto renumber = [&](std::vector<int32_t>& index) {
      for (size_t e = 0; e < index.size(); ++e) {
        index[e] = new_number[static_cast<size_t>(index[e])];
        if (index[e] < 0) keep_edge[e] = 0;
      }
    };
    if (edges.source == nodes) renumber(edges.source_index);
    if (edges.target == nodes) renumber(edges.target_index);
    keep_edges(edges, keep_edge);
  }
  return kept;
}

std::vector<uint8_t> connected_nodes(const Graph& graph, const std::string& nodes) {
  std::vector<uint8_t> connected(graph.nodes(nodes).lat_rad.size(), 0);
  const auto mark = [&](const std::vector<int32_t>& index) {
    for (const int32_t node : index)
      connected[static_cast<size_t>(node)] = 1;
  };
  for (const EdgeSet& edges : graph.edge_sets) {
    if (edges.source == nodes) mark(edges.source_index);
    if (edges.target == nodes) mark(edges.target_index);
  }
  return connected;
}

std::vector<uint8_t> nodes_in_area(const NodeSet& nodes, const Area& area) {
  const double west = positive_degrees(area.west);
  const double east = positive_degrees(area.east - 1) + 1;  // 360 stays 360
  std::vector<uint8_t> inside;
  inside.reserve(nodes.lat_rad.size());
  for (size_t i = 0; i < nodes.lat_rad.size(); ++i) {
    const double lat = static_cast<double>(nodes.lat_rad[i]) * 180 / kPi;
    const double lon = positive_degrees(static_cast<double>(nodes.lon_rad[i]) * 180 / kPi);
    const bool lon_inside = west <= east ? lon >= west && lon <= east : lon >= west || lon <= east;
    inside.push_back(lat <= area.north && lat >= area.south && lon_inside ? 1 : 0);
  }
  return inside;
}

void keep_edges(EdgeSet& edges, const std::vector<uint8_t>& keep) {
  AIFS_CHECK(keep.size() == edges.source_index.size(), keep.size(), " marks for ",
             edges.source_index.size(), " edges");
  if (std::find(keep.begin(), keep.end(), 0) != keep.end()) take_rows(edges, positions_of(keep));
}

std::vector<uint8_t> edges_up_to(const Graph& graph, const EdgeSet& edges, double length_km) {
  const auto lengths = edge_length<double>({graph.nodes(edges.source), graph.nodes(edges.target),
                                            edges.source_index, edges.target_index});
  std::vector<uint8_t> keep;
  keep.reserve(lengths.size());
  for (const double length : lengths)
    keep.push_back(length * kEarthRadius_km <= length_km ? 1 : 0);
  return keep;
}

void sort_edges(EdgeSet& edges, EdgeEnd end, bool descending) {
  const auto& index = end == EdgeEnd::kSource ? edges.source_index : edges.target_index;
  std::vector<int32_t> order(index.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const int32_t left = index[static_cast<size_t>(a)], right = index[static_cast<size_t>(b)];
    return descending ? left > right : left < right;
  });
  take_rows(edges, order);
}

}  // namespace aifs::graph
