// SPDX-License-Identifier: Apache-2.0
#include "graph/unconnected.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "core/check.h"
#include "core/join.h"
#include "graph/base/geometry.h"
#include "graph/base/kd_tree.h"
#include "graph/edges/neighbour_kinds.h"

namespace aifs::graph {

namespace {

// Searching nodes that are looked at for each node without edges. One of the nearest almost surely
// has the fewest nodes that are nearer.
constexpr int64_t kLookedAt = 64;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The smallest radius whose square, as it is computed, is no less.
double radius_of(double distance2) {
  double radius = std::sqrt(distance2);
  while (radius * radius < distance2)
    radius = std::nextafter(radius, kInfinity);
  return radius;
}

class Search {
 public:
  Search(const SearchedSets& sets, const SearchLimits& limits, int64_t threads)
      : sets_(sets),
        limits_(limits),
        found_points_(unit_vectors<float>(sets.found.lat_rad, sets.found.lon_rad)),
        searching_points_(unit_vectors<float>(sets.searching.lat_rad, sets.searching.lon_rad)),
        found_(found_points_, threads),
        searching_(searching_points_, threads) {}

  Coverage coverage() {
    Coverage coverage{.cure = limits_};
    const double radius2 = limits_.radius ? *limits_.radius * *limits_.radius : kInfinity;
    double wanted2 = radius2;
    const auto is_beyond = [&](const KdTree<float>& tree, const Point<float>& point) {
      tree.nearest(point, 1, near_);
      if (near_.front().distance2 <= radius2) return false;
      wanted2 = std::max(wanted2, near_.front().distance2);
      return true;
    };
    for (const int32_t node : sets_.found_without) {
      const bool beyond = is_beyond(searching_, found_points_[static_cast<size_t>(node)]);
      ++(beyond ? coverage.num_beyond_radius : coverage.num_over_cap);
    }
    for (const int32_t node : sets_.searching_without)
      coverage.num_beyond_radius +=
          is_beyond(found_, searching_points_[static_cast<size_t>(node)]) ? 1 : 0;
    if (coverage.num_beyond_radius > 0) coverage.cure.radius = radius_of(wanted2);
    if (!limits_.most) return coverage;
    for (const int32_t node : sets_.found_without)
      coverage.cure.most = std::max(*coverage.cure.most, cap_for(node, wanted2));
    return coverage;
  }

 private:
  // The place of a found node in the order of distances from a searching node, counted from 1.
  int64_t rank(int32_t found, const Neighbour& searching) {
    found_.within(searching_points_[static_cast<size_t>(searching.index)], searching.distance2,
                  within_);
    const Neighbour own{searching.distance2, found};
    return 1 + std::count_if(within_.begin(), within_.end(),
                             [&](const Neighbour& other) { return other < own; });
  }
  // The smallest number of edges of the searching nodes within a radius that reaches the node.
  int64_t cap_for(int32_t node, double radius2) {
    searching_.nearest(found_points_[static_cast<size_t>(node)], kLookedAt, near_);
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const Neighbour& searching : near_)
      if (searching.distance2 <= radius2) least = std::min(least, rank(node, searching));
    return least;
  }

  const SearchedSets& sets_;
  const SearchLimits& limits_;
  std::vector<Point<float>> found_points_, searching_points_;
  KdTree<float> found_, searching_;
  std::vector<Neighbour> near_, within_;
};

// A builder of neighbours in the words of its options.
struct Setting {
  std::string path;
  bool sources_search = false;
  SearchLimits limits = {};
  std::string radius_key = {};  // empty: there is no radius
  double radius_unit = 1.0;     // of the option, as a chord
  std::string most_key = {};
};

template <class Kind>
std::optional<Setting> cut_off_setting(const RecipeEdges::Builder& builder, bool sources_search,
                                       const NodeSet& searching, int64_t threads) {
  const auto* kind = builder.kind.as<Kind>();
  if (!kind) return std::nullopt;
  const CutOff cut_off = kind->limits();
  Setting setting{.path = builder.path, .sources_search = sources_search};
  setting.limits.radius = cut_off.radius(searching, threads);
  if (kind->max_neighbours > 0) setting.limits.most = kind->max_neighbours;
  setting.radius_key = cut_off.factor ? "cutoff_factor" : "cutoff_distance_km";
  setting.radius_unit =
      *setting.limits.radius / (cut_off.factor ? *cut_off.factor : *cut_off.distance_km);
  setting.most_key = "max_neighbours";
  return setting;
}

template <class Kind>
std::optional<Setting> nearest_setting(const RecipeEdges::Builder& builder, bool sources_search) {
  const auto* kind = builder.kind.as<Kind>();
  if (!kind) return std::nullopt;
  return Setting{.path = builder.path,
                 .sources_search = sources_search,
                 .limits = {.most = kind->num_neighbours},
                 .most_key = "num_neighbours"};
}

// Empty for other kinds.
std::optional<Setting> setting_of(const RecipeEdges::Builder& builder, const NodeSet& source,
                                  const NodeSet& target, int64_t threads) {
  if (auto found = cut_off_setting<ReversedCutOffKind>(builder, true, source, threads))
    return found;
  if (auto found = cut_off_setting<CutOffKind>(builder, false, target, threads)) return found;
  if (auto found = nearest_setting<ReversedKnnKind>(builder, true)) return found;
  return nearest_setting<KnnKind>(builder, false);
}

// At least the value, with four digits.
std::string rounded_up(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 3);
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", std::ceil(value / unit * (1 + 1e-12)) * unit);
  return text;
}

std::string reason_text(const Coverage& coverage, const Setting& setting) {
  std::vector<std::string> causes, cures;
  const auto option = [&](const std::string& key, const std::string& value) {
    return concat(setting.path, ".", key, " ", value);
  };
  if (coverage.num_beyond_radius > 0) {
    char now[32];
    std::snprintf(now, sizeof now, "%.6g", *setting.limits.radius / setting.radius_unit);
    causes.push_back(
        concat(coverage.num_beyond_radius, " beyond ", option(setting.radius_key, now)));
    cures.push_back(
        option(setting.radius_key, rounded_up(*coverage.cure.radius / setting.radius_unit)));
  }
  if (coverage.num_over_cap > 0) {
    causes.push_back(concat(coverage.num_over_cap, " cut off by ",
                            option(setting.most_key, std::to_string(*setting.limits.most))));
  }
  if (setting.limits.most && *coverage.cure.most > *setting.limits.most)
    cures.push_back(option(setting.most_key, std::to_string(*coverage.cure.most)));
  return concat(join(causes, ", "), "; the smallest that leaves none: ", join(cures, " and "));
}

std::string distance_text(const UnconnectedNodes& nodes, const Graph& graph, int64_t threads) {
  const NodeSet& set = graph.nodes(nodes.set);
  const NodeSet& other = graph.nodes(nodes.other);
  const auto points = unit_vectors<float>(set.lat_rad, set.lon_rad);
  const KdTree<float> tree(unit_vectors<float>(other.lat_rad, other.lon_rad), threads);
  std::vector<Neighbour> near;
  double most2 = 0.0;
  for (const int32_t node : nodes.nodes) {
    tree.nearest(points[static_cast<size_t>(node)], 1, near);
    if (!near.empty()) most2 = std::max(most2, near.front().distance2);
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", arc_of_chord(std::sqrt(most2)));
  return concat("the nearest node of '", nodes.other, "' is up to ", text, " km away");
}

const RecipeEdges* edges_between(const Recipe* recipe, const UnconnectedNodes& nodes) {
  if (!recipe) return nullptr;
  const std::string& source = nodes.are_sources ? nodes.set : nodes.other;
  const std::string& target = nodes.are_sources ? nodes.other : nodes.set;
  for (const RecipeEdges& edges : recipe->edges)
    if (edges.source == source && edges.target == target) return &edges;
  return nullptr;
}

std::string reason_of(const UnconnectedNodes& nodes, const Graph& graph, const Recipe* recipe,
                      int64_t threads) {
  const RecipeEdges* edges = edges_between(recipe, nodes);
  if (!edges || edges->builders.size() != 1) return distance_text(nodes, graph, threads);
  const RecipeEdges::Builder& builder = edges->builders.front();
  const NodeSet& source = graph.nodes(edges->source);
  const NodeSet& target = graph.nodes(edges->target);
  const auto* neighbours = builder.kind.as<NeighbourKind>();
  if (neighbours && !(neighbours->source_mask + neighbours->target_mask).empty())
    return concat(builder.path, " has masks: nodes outside of them take no part");
  const auto setting = setting_of(builder, source, target, threads);
  if (!setting) return distance_text(nodes, graph, threads);
  SearchedSets sets{.found = setting->sources_search ? target : source,
                    .searching = setting->sources_search ? source : target};
  (nodes.are_sources == setting->sources_search ? sets.searching_without : sets.found_without) =
      nodes.nodes;
  const Coverage coverage = coverage_of(sets, setting->limits, threads);
  const int64_t explained = coverage.num_beyond_radius + coverage.num_over_cap;
  // What was done to the graph later may have taken edges away.
  const bool by_search = explained == static_cast<int64_t>(nodes.nodes.size()) &&
                         (coverage.num_over_cap == 0 || setting->limits.most);
  return by_search ? reason_text(coverage, *setting) : distance_text(nodes, graph, threads);
}

}  // namespace

std::string UnconnectedNodes::text() const {
  const auto count = static_cast<int64_t>(nodes.size());
  char percent[32];
  std::snprintf(percent, sizeof percent, "%.2g",
                100.0 * static_cast<double>(count) / static_cast<double>(num_nodes));
  return concat(count, " of ", num_nodes, " (", percent, " %) ", set, " nodes have no edge ",
                are_sources ? "to" : "from", " '", other, "'");
}

std::vector<UnconnectedNodes> unconnected_nodes(const GraphStatistics& statistics) {
  std::vector<UnconnectedNodes> all;
  const auto set_of = [&](const std::string& name) -> const NodeSetStatistics& {
    for (const NodeSetStatistics& set : statistics.node_sets)
      if (set.name == name) return set;
    throw Error(concat("statistics of edges at '", name, "', but not of its nodes"));
  };
  for (const EdgeSetStatistics& edges : statistics.edge_sets) {
    const NodeSetStatistics& source = set_of(edges.source);
    const NodeSetStatistics& target = set_of(edges.target);
    if (source.is_data && !edges.sources.without.empty())
      all.push_back({.set = source.name,
                     .other = target.name,
                     .are_sources = true,
                     .is_data = true,
                     .num_nodes = source.num_nodes,
                     .nodes = edges.sources.without});
    const bool is_between = source.is_data != target.is_data || target.is_data;
    if (is_between && !edges.targets.without.empty())
      all.push_back({.set = target.name,
                     .other = source.name,
                     .is_data = target.is_data,
                     .num_nodes = target.num_nodes,
                     .nodes = edges.targets.without});
  }
  return all;
}

Coverage coverage_of(const SearchedSets& sets, const SearchLimits& limits, int64_t threads) {
  return Search(sets, limits, threads).coverage();
}

void explain(std::vector<UnconnectedNodes>& all, const Graph& graph, const Recipe* recipe,
             int64_t threads) {
  for (UnconnectedNodes& nodes : all)
    nodes.reason = reason_of(nodes, graph, recipe, threads);
}

}  // namespace aifs::graph
