// SPDX-License-Identifier: Apache-2.0
#include "conformance/graph_compare.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "graph/base/kd_tree.h"

namespace aifs::conformance {

namespace {

// Chords that differ by less are equal up to the rounding of float32 coordinates.
constexpr double kSameChord = 2e-7;

using Keys = std::vector<uint64_t>;

Keys sorted_keys(const graph::EdgeList& edges) {
  Keys keys;
  for (size_t e = 0; e < edges.source_index.size(); ++e) {
    keys.push_back((static_cast<uint64_t>(static_cast<uint32_t>(edges.source_index[e])) << 32) |
                   static_cast<uint32_t>(edges.target_index[e]));
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

int32_t source_of(uint64_t key) {
  return static_cast<int32_t>(key >> 32);
}
int32_t target_of(uint64_t key) {
  return static_cast<int32_t>(key & 0xFFFFFFFFU);
}

class Chords {
 public:
  Chords(const graph::NodeSet& source, const graph::NodeSet& target)
      : source_(graph::unit_vectors<float>(source.lat_rad, source.lon_rad)),
        target_(graph::unit_vectors<float>(target.lat_rad, target.lon_rad)) {}
  double operator()(int32_t source, int32_t target) const {
    return std::sqrt(graph::squared_distance(source_.at(static_cast<size_t>(source)),
                                             target_.at(static_cast<size_t>(target))));
  }

 private:
  std::vector<graph::Point<float>> source_, target_;
};

// The largest chord that each searching node of a search accepts.
std::map<int32_t, double> search_limits(const Search& search, const Chords& chord) {
  std::map<int32_t, double> limit;
  std::map<int32_t, int64_t> found;
  const graph::EdgeList& edges = search.edges;
  for (size_t e = 0; e < edges.source_index.size(); ++e) {
    const int32_t s = edges.source_index[e], t = edges.target_index[e];
    const int32_t node = search.from_targets ? t : s;
    limit[node] = std::max(limit[node], chord(s, t));
    ++found[node];
  }
  if (search.radius) {
    for (auto& [node, distance] : limit) {
      if (found[node] < search.max_neighbours) distance = *search.radius;
    }
  }
  return limit;
}

// Whether rounding decides if a search finds this edge.
bool on_the_limit(uint64_t key, const Search& search, const std::map<int32_t, double>& limits,
                  double chord) {
  const auto found = limits.find(search.from_targets ? target_of(key) : source_of(key));
  if (found != limits.end()) return std::abs(chord - found->second) <= kSameChord;
  return search.radius && std::abs(chord - *search.radius) <= kSameChord;
}

bool inside(const graph::EdgeList& edges, int64_t num_sources, int64_t num_targets) {
  for (size_t e = 0; e < edges.source_index.size(); ++e) {
    const int32_t s = edges.source_index[e], t = edges.target_index[e];
    if (s < 0 || s >= num_sources || t < 0 || t >= num_targets) return false;
  }
  return true;
}

}  // namespace

graph::NodeSet read_node_set(const SafetensorsFile& file, const std::string& tensor,
                             const std::string& name) {
  const std::vector<double> latlon = file.doubles(tensor);
  graph::NodeSet nodes;
  nodes.name = name;
  for (size_t i = 0; i + 1 < latlon.size(); i += 2) {
    nodes.lat_rad.push_back(static_cast<float>(latlon[i]));
    nodes.lon_rad.push_back(static_cast<float>(latlon[i + 1]));
  }
  return nodes;
}

graph::EdgeList read_edge_list(const SafetensorsFile& file, const std::string& tensor) {
  const std::vector<int64_t> index = file.integers(tensor);
  const size_t count = index.size() / 2;
  graph::EdgeList edges;
  for (size_t e = 0; e < count; ++e)
    edges.add(static_cast<int32_t>(index[e]), static_cast<int32_t>(index[count + e]));
  return edges;
}

graph::Attribute read_attribute(const SafetensorsFile& file, const std::string& tensor) {
  const auto& shape = file.at(tensor).shape;
  const std::vector<double> values = file.doubles(tensor);
  return {shape.size() > 1 ? shape[1] : 1, {values.begin(), values.end()}};
}

graph::Coordinates read_degrees(const SafetensorsFile& file, const std::string& tensor) {
  const std::vector<double> latlon = file.doubles(tensor);
  graph::Coordinates coordinates;
  for (size_t i = 0; i + 1 < latlon.size(); i += 2) {
    coordinates.lat_deg.push_back(latlon[i]);
    coordinates.lon_deg.push_back(latlon[i + 1]);
  }
  return coordinates;
}

double largest_distance(const graph::NodeSet& a, const graph::NodeSet& b) {
  if (a.num_nodes() != b.num_nodes()) return INFINITY;
  const auto x = graph::unit_vectors<double>(a.lat_rad, a.lon_rad);
  const auto y = graph::unit_vectors<double>(b.lat_rad, b.lon_rad);
  double most = 0.0;
  for (size_t i = 0; i < x.size(); ++i)
    most = std::max(most, graph::squared_distance(x[i], y[i]));
  return std::sqrt(most);
}

std::vector<int32_t> match_nodes(const graph::NodeSet& ours, const graph::NodeSet& stored,
                                 double limit) {
  if (ours.num_nodes() != stored.num_nodes()) {
    throw DataError(concat("'", ours.name, "' has ", ours.num_nodes(), " nodes, the reference ",
                           stored.num_nodes()));
  }
  const graph::KdTree<double> tree(graph::unit_vectors<double>(stored.lat_rad, stored.lon_rad));
  const auto points = graph::unit_vectors<double>(ours.lat_rad, ours.lon_rad);
  std::vector<int32_t> number;
  std::vector<bool> taken(points.size(), false);
  std::vector<graph::Neighbour> found;
  for (size_t i = 0; i < points.size(); ++i) {
    tree.nearest(points[i], 1, found);
    const auto nearest = static_cast<size_t>(found.front().index);
    if (found.front().distance2 > limit * limit || taken[nearest]) {
      throw DataError(concat("node ", i, " of '", ours.name, "' is not among the reference nodes"));
    }
    taken[nearest] = true;
    number.push_back(found.front().index);
  }
  return number;
}

graph::EdgeList renumbered(const graph::EdgeList& edges, const std::vector<int32_t>& source_number,
                           const std::vector<int32_t>& target_number) {
  graph::EdgeList result;
  for (size_t e = 0; e < edges.source_index.size(); ++e) {
    result.add(source_number[static_cast<size_t>(edges.source_index[e])],
               target_number[static_cast<size_t>(edges.target_index[e])]);
  }
  return result;
}

void compare_edges(Comparison& comparison, const std::string& what, const BuiltEdges& built,
                   const graph::EdgeList& stored, const graph::NodeSet& source,
                   const graph::NodeSet& target) {
  if (!inside(stored, source.num_nodes(), target.num_nodes())) {
    throw DataError(concat(what, ": the reference has edges to nodes that do not exist"));
  }
  const Keys ours = sorted_keys(built.edges), theirs = sorted_keys(stored);
  Keys different;
  std::set_symmetric_difference(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                                std::back_inserter(different));
  const Chords chord(source, target);
  std::vector<std::map<int32_t, double>> limits;
  for (const Search& search : built.searches)
    limits.push_back(search_limits(search, chord));
  int64_t unexplained = 0;
  for (const uint64_t key : different) {
    bool explained = built.has_undecided_loops && source_of(key) == target_of(key);
    for (size_t i = 0; i < limits.size(); ++i) {
      explained = explained || on_the_limit(key, built.searches[i], limits[i],
                                            chord(source_of(key), target_of(key)));
    }
    if (!explained) ++unexplained;
  }
  comparison.require(unexplained == 0, concat(what, ": ", unexplained, " of ", ours.size(),
                                              " edges differ (reference ", theirs.size(), ")"));
  if (built.has_order && different.empty()) {
    comparison.require(built.edges.source_index == stored.source_index &&
                           built.edges.target_index == stored.target_index,
                       concat(what, ": the edges have another order"));
  }
}

template <class Real>
double largest_relative_difference(const std::vector<Real>& values, const SafetensorsFile& file,
                                   const std::string& tensor) {
  const std::vector<double> stored = file.doubles(tensor);
  if (stored.size() != values.size()) return std::numeric_limits<double>::infinity();
  double most = 0.0;
  for (size_t i = 0; i < stored.size(); ++i) {
    const double scale = stored[i] == 0 ? 1.0 : std::abs(stored[i]);
    const double difference = std::abs(static_cast<double>(values[i]) - stored[i]) / scale;
    if (!(difference <= most)) most = difference;
  }
  return most;
}

template double largest_relative_difference(const std::vector<float>&, const SafetensorsFile&,
                                            const std::string&);
template double largest_relative_difference(const std::vector<double>&, const SafetensorsFile&,
                                            const std::string&);

void compare_coordinates(Comparison& comparison, const std::string& what,
                         const graph::NodeSet& ours, const graph::NodeSet& stored, double limit) {
  comparison.require(
      ours.num_nodes() == stored.num_nodes(),
      concat(what, ": ", ours.num_nodes(), " nodes, reference ", stored.num_nodes()));
  if (ours.num_nodes() != stored.num_nodes()) return;
  double most = 0.0;
  for (size_t i = 0; i < ours.lat_rad.size(); ++i) {
    const double lat = std::abs(static_cast<double>(ours.lat_rad[i]) - stored.lat_rad[i]);
    const double lon = std::abs(static_cast<double>(ours.lon_rad[i]) - stored.lon_rad[i]);
    most = std::max({most, lat, std::min(lon, std::abs(lon - 2 * graph::kPi))});
  }
  comparison.add(what + " coordinates", most, limit);
}

}  // namespace aifs::conformance
