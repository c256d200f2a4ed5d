// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_difference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "core/join.h"
#include "graph/base/geometry.h"

namespace aifs::graph {

namespace {

constexpr size_t kShown = 3;

using Attributes = std::map<std::string, Attribute>;
// Rows of a and b that belong together; none: all, in their order.
using Pairs = std::vector<std::pair<size_t, size_t>>;

double difference(float a, float b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0.0;
  const double apart = std::abs(static_cast<double>(a) - static_cast<double>(b));
  return std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart;
}

AttributeDifference compare(const std::string& name, const Attribute& a, const Attribute& b,
                            const Pairs* pairs) {
  AttributeDifference found{.name = name, .width_a = a.width, .width_b = b.width};
  if (a.width != b.width) return found;
  const auto width = static_cast<size_t>(a.width);
  const size_t rows = pairs ? pairs->size() : a.values.size() / width;
  for (size_t k = 0; k < rows; ++k) {
    const auto [row_a, row_b] = pairs ? (*pairs)[k] : std::pair{k, k};
    for (size_t column = 0; column < width; ++column) {
      const double apart =
          difference(a.values[row_a * width + column], b.values[row_b * width + column]);
      if (apart <= found.largest) continue;
      found.largest = apart;
      found.row = static_cast<int64_t>(row_a);
    }
  }
  return found;
}

std::vector<AttributeDifference> compare(const Attributes& a, const Attributes& b,
                                         const Pairs* pairs, double tolerance) {
  std::vector<AttributeDifference> all;
  for (const auto& [name, attribute] : a) {
    const auto other = b.find(name);
    if (other == b.end()) {
      all.push_back({.name = name, .only_in_a = true, .width_a = attribute.width});
      continue;
    }
    const AttributeDifference found = compare(name, attribute, other->second, pairs);
    if (found.width_a != found.width_b || found.largest > tolerance) all.push_back(found);
  }
  for (const auto& [name, attribute] : b)
    if (a.count(name) == 0)
      all.push_back({.name = name, .only_in_b = true, .width_b = attribute.width});
  return all;
}

NodeSetDifference compare(const NodeSet& a, const NodeSet& b, double tolerance) {
  NodeSetDifference found{.name = a.name, .num_a = a.num_nodes(), .num_b = b.num_nodes()};
  if (found.num_a != found.num_b) return found;
  for (size_t i = 0; i < a.lat_rad.size(); ++i) {
    const double apart =
        std::max(difference(a.lat_rad[i], b.lat_rad[i]), difference(a.lon_rad[i], b.lon_rad[i]));
    if (apart <= tolerance) continue;
    ++found.num_moved;
    const double km = kEarthRadius_km *
                      great_circle_angle(a.lat_rad[i], a.lon_rad[i], b.lat_rad[i], b.lon_rad[i]);
    if (found.farthest >= 0 && km <= found.farthest_km) continue;
    found.farthest_km = km;
    found.farthest = static_cast<int64_t>(i);
  }
  found.attributes = compare(a.attributes, b.attributes, nullptr, tolerance);
  return found;
}

bool differs(const NodeSetDifference& found) {
  return found.num_a != found.num_b || found.num_moved > 0 || !found.attributes.empty();
}

// Positions of edges in the order of (source, target), equal ones as they stand.
std::vector<size_t> sorted(const EdgeSet& edges) {
  std::vector<size_t> order(edges.source_index.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    return std::pair(edges.source_index[i], edges.target_index[i]) <
           std::pair(edges.source_index[j], edges.target_index[j]);
  });
  return order;
}

EdgeSetDifference compare(const EdgeSet& a, const EdgeSet& b, double tolerance) {
  EdgeSetDifference found{
      .source = a.source, .target = a.target, .num_a = a.num_edges(), .num_b = b.num_edges()};
  if (a.source_index == b.source_index && a.target_index == b.target_index) {
    found.attributes = compare(a.attributes, b.attributes, nullptr, tolerance);
    return found;
  }
  const std::vector<size_t> order_a = sorted(a), order_b = sorted(b);
  const auto edge = [](const EdgeSet& edges, size_t e) {
    return EdgeSetDifference::Edge{edges.source_index[e], edges.target_index[e]};
  };
  const auto key = [](const EdgeSetDifference::Edge& e) { return std::pair(e.source, e.target); };
  const auto note = [&](int64_t& count, std::vector<EdgeSetDifference::Edge>& first,
                        const EdgeSetDifference::Edge& one) {
    ++count;
    if (first.size() < kShown) first.push_back(one);
  };
  Pairs pairs;
  for (size_t i = 0, j = 0; i < order_a.size() || j < order_b.size();) {
    if (j == order_b.size() ||
        (i < order_a.size() && key(edge(a, order_a[i])) < key(edge(b, order_b[j])))) {
      note(found.num_only_a, found.first_only_a, edge(a, order_a[i++]));
    } else if (i == order_a.size() || key(edge(b, order_b[j])) < key(edge(a, order_a[i]))) {
      note(found.num_only_b, found.first_only_b, edge(b, order_b[j++]));
    } else {
      pairs.emplace_back(order_a[i++], order_b[j++]);
    }
  }
  found.other_order = found.num_only_a == 0 && found.num_only_b == 0;
  found.attributes = compare(a.attributes, b.attributes, &pairs, tolerance);
  return found;
}

bool differs(const EdgeSetDifference& found) {
  return found.num_only_a > 0 || found.num_only_b > 0 || found.other_order ||
         !found.attributes.empty();
}

// Calls for each item of both lists that has no partner, and for each pair.
template <class T, class Same, class One, class Both>
void match(const std::vector<T>& a, const std::vector<T>& b, const Same& same, const One& one,
           const Both& both) {
  const auto partner = [&](const T& item, const std::vector<T>& others) {
    return std::find_if(others.begin(), others.end(), [&](const T& o) { return same(item, o); });
  };
  for (const T& item : a) {
    const auto other = partner(item, b);
    other == b.end() ? one(item, /*in_a=*/true) : both(item, *other);
  }
  for (const T& item : b)
    if (partner(item, a) == a.end()) one(item, /*in_a=*/false);
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string attribute_lines(const std::string& owner, const std::string& row,
                            const std::vector<AttributeDifference>& attributes) {
  std::string text;
  for (const AttributeDifference& attribute : attributes) {
    text += concat(owner, " attribute '", attribute.name, "': ");
    if (attribute.only_in_a || attribute.only_in_b) {
      text += concat("only in ", attribute.only_in_a ? "A" : "B", "\n");
    } else if (attribute.width_a != attribute.width_b) {
      text += concat("width ", attribute.width_a, " in A, ", attribute.width_b, " in B\n");
    } else {
      text += concat("largest difference ", number(attribute.largest), ", at ", row, " ",
                     attribute.row, "\n");
    }
  }
  return text;
}

std::string lines_of(const NodeSetDifference& set) {
  const std::string owner = concat("nodes '", set.name, "'");
  if (set.only_in_a || set.only_in_b)
    return concat(owner, ": only in ", set.only_in_a ? "A" : "B", " (",
                  set.only_in_a ? set.num_a : set.num_b, " nodes)\n");
  if (set.num_a != set.num_b)
    return concat(owner, ": ", set.num_a, " in A, ", set.num_b, " in B\n");
  std::string text;
  if (set.num_moved > 0)
    text = concat(owner, ": ", set.num_moved, " of ", set.num_a, " at other places, node ",
                  set.farthest, " by ", number(set.farthest_km), " km\n");
  return text + attribute_lines(owner, "node", set.attributes);
}

std::string lines_of(const EdgeSetDifference& set) {
  const std::string owner = concat("edges ", set.source, "->", set.target);
  if (set.only_in_a || set.only_in_b)
    return concat(owner, ": only in ", set.only_in_a ? "A" : "B", " (",
                  set.only_in_a ? set.num_a : set.num_b, " edges)\n");
  std::string text;
  const auto only = [&](const char* graph, int64_t count,
                        const std::vector<EdgeSetDifference::Edge>& first) {
    if (count == 0) return;
    std::vector<std::string> shown;
    for (const EdgeSetDifference::Edge& edge : first)
      shown.push_back(concat(edge.source, "->", edge.target));
    text += concat(owner, ": ", count, " only in ", graph, " (", join(shown),
                   count > static_cast<int64_t>(first.size()) ? ", ..." : "", ")\n");
  };
  if (set.num_a != set.num_b)
    text += concat(owner, ": ", set.num_a, " in A, ", set.num_b, " in B\n");
  only("A", set.num_only_a, set.first_only_a);
  only("B", set.num_only_b, set.first_only_b);
  if (set.other_order) text += concat(owner, ": the same edges in another order\n");
  return text + attribute_lines(owner, "edge", set.attributes);
}

}  // namespace

std::string GraphDifference::text() const {
  std::string text;
  for (const NodeSetDifference& set : node_sets)
    text += lines_of(set);
  for (const EdgeSetDifference& set : edge_sets)
    text += lines_of(set);
  if (other_set_order) text += "the sets stand in another order\n";
  return text;
}

GraphDifference difference_of(const Graph& a, const Graph& b, double tolerance) {
  GraphDifference all;
  const auto same_name = [](const NodeSet& x, const NodeSet& y) { return x.name == y.name; };
  const auto same_ends = [](const EdgeSet& x, const EdgeSet& y) {
    return x.source == y.source && x.target == y.target;
  };
  match(
      a.node_sets, b.node_sets, same_name,
      [&](const NodeSet& set, bool in_a) {
        all.node_sets.push_back({.name = set.name,
                                 .only_in_a = in_a,
                                 .only_in_b = !in_a,
                                 .num_a = in_a ? set.num_nodes() : 0,
                                 .num_b = in_a ? 0 : set.num_nodes()});
      },
      [&](const NodeSet& x, const NodeSet& y) {
        NodeSetDifference found = compare(x, y, tolerance);
        if (differs(found)) all.node_sets.push_back(std::move(found));
      });
  match(
      a.edge_sets, b.edge_sets, same_ends,
      [&](const EdgeSet& set, bool in_a) {
        all.edge_sets.push_back({.source = set.source,
                                 .target = set.target,
                                 .only_in_a = in_a,
                                 .only_in_b = !in_a,
                                 .num_a = in_a ? set.num_edges() : 0,
                                 .num_b = in_a ? 0 : set.num_edges()});
      },
      [&](const EdgeSet& x, const EdgeSet& y) {
        EdgeSetDifference found = compare(x, y, tolerance);
        if (differs(found)) all.edge_sets.push_back(std::move(found));
      });
  all.other_set_order =
      all.none() && !(std::equal(a.node_sets.begin(), a.node_sets.end(), b.node_sets.begin(),
                                 b.node_sets.end(), same_name) &&
                      std::equal(a.edge_sets.begin(), a.edge_sets.end(), b.edge_sets.begin(),
                                 b.edge_sets.end(), same_ends));
  return all;
}

}  // namespace aifs::graph
