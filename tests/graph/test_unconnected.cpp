// SPDX-License-Identifier: Apache-2.0
#include "graph/unconnected.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <set>

#include "graph/base/kd_tree.h"
#include "graph/builder.h"
#include "tests/graph/graph_samples.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Without {
  std::vector<int32_t> found, searching;
  bool operator==(const Without&) const = default;
};

// The nodes of both sets that a search leaves without edges, by trying every pair.
Without searched(const NodeSet& found, const NodeSet& searching, double radius, int64_t most) {
  const auto from = unit_vectors<float>(found.lat_rad, found.lon_rad);
  const auto to = unit_vectors<float>(searching.lat_rad, searching.lon_rad);
  std::set<int32_t> reached;
  Without without;
  for (size_t s = 0; s < to.size(); ++s) {
    std::vector<std::pair<double, int32_t>> near;
    for (size_t f = 0; f < from.size(); ++f) {
      const double distance2 = squared_distance(from[f], to[s]);
      if (distance2 <= radius * radius) near.emplace_back(distance2, static_cast<int32_t>(f));
    }
    std::sort(near.begin(), near.end());
    if (near.empty()) without.searching.push_back(static_cast<int32_t>(s));
    for (size_t k = 0; k < near.size() && static_cast<int64_t>(k) < most; ++k)
      reached.insert(near[k].second);
  }
  for (int32_t f = 0; f < static_cast<int32_t>(from.size()); ++f)
    if (reached.count(f) == 0) without.found.push_back(f);
  return without;
}

const Without kNone{};

GraphOptions options_of(const std::string& encoder) {
  return samples::section<GraphOptions>(
      R"({"grid": "o16", "hidden": {"refinement": 3}, "encoder": )" + encoder + "}", "graph");
}

std::vector<UnconnectedNodes> explained(const GraphOptions& options) {
  const Graph graph = build_graph(options, {});
  std::vector<UnconnectedNodes> all = unconnected_nodes(degrees_of(graph));
  const Recipe recipe = recipe_of(options, {"data"});
  explain(all, graph, &recipe);
  return all;
}

// The value of an option that a reason proposes; 0 if it proposes none.
double proposed(const UnconnectedNodes& nodes, const std::string& key) {
  const std::string cure = nodes.reason.substr(nodes.reason.find("leaves none"));
  std::smatch match;
  return std::regex_search(cure, match, std::regex("graph\\.encoder\\." + key + " ([0-9.e+-]+)"))
             ? std::stod(match[1].str())
             : 0.0;
}

}  // namespace

TEST_CASE("the smallest limits that leave no node without edges are found", "[unconnected]") {
  const NodeSet found = samples::random_nodes("data", 250, 3);
  const NodeSet searching = samples::random_nodes("hidden", 40, 4);
  int64_t beyond = 0, over = 0;
  for (const double radius : {0.08, 0.2, 0.4, 0.9}) {
    for (const int64_t most : {1, 4, 12, 300}) {
      const Without without = searched(found, searching, radius, most);
      if (without == kNone) continue;
      const SearchedSets sets{found, searching, without.found, without.searching};
      const Coverage coverage = coverage_of(sets, {radius, most});
      INFO("radius " << radius << ", at most " << most);
      const double r = coverage.cure.radius.value();
      const int64_t k = coverage.cure.most.value();
      beyond += coverage.num_beyond_radius;
      over += coverage.num_over_cap;
      CHECK(coverage.num_beyond_radius + coverage.num_over_cap ==
            static_cast<int64_t>(without.found.size() + without.searching.size()));
      const Without unlimited = searched(found, searching, radius, 300);
      CHECK(coverage.num_beyond_radius ==
            static_cast<int64_t>(unlimited.found.size() + unlimited.searching.size()));
      CHECK(searched(found, searching, r, k) == kNone);
      if (k > most) CHECK(searched(found, searching, r, k - 1) != kNone);
      if (r > radius) CHECK(searched(found, searching, r * (1 - 1e-12), 300) != kNone);
    }
  }
  CHECK(beyond > 0);
  CHECK(over > 0);
}

TEST_CASE("the fewest neighbours that reach all are found", "[unconnected]") {
  const NodeSet found = samples::random_nodes("data", 120, 5);
  const NodeSet searching = samples::random_nodes("hidden", 30, 6);
  const Without without = searched(found, searching, kInfinity, 2);
  const Coverage coverage =
      coverage_of({found, searching, without.found, {}}, {.radius = {}, .most = 2});
  CHECK(coverage.num_over_cap == static_cast<int64_t>(without.found.size()));
  const int64_t k = coverage.cure.most.value();
  CHECK_FALSE(coverage.cure.radius.has_value());
  CHECK(searched(found, searching, kInfinity, k) == kNone);
  CHECK(searched(found, searching, kInfinity, k - 1) != kNone);
}

TEST_CASE("a factor that is too small is named with the smallest that is not", "[unconnected]") {
  const auto encoder = [](double factor) {
    return concat(R"({"kind": "cutoff", "cutoff_factor": )", factor, "}");
  };
  const auto all = explained(options_of(encoder(0.45)));
  REQUIRE_FALSE(all.empty());
  INFO(all[0].reason);
  CHECK(all[0].set == "data");
  CHECK(all[0].are_sources);
  CHECK_THAT(all[0].text(), ContainsSubstring("data nodes have no edge to 'hidden'"));
  CHECK_THAT(all[0].reason, ContainsSubstring("beyond graph.encoder.cutoff_factor 0.45"));
  double factor = 0.45;
  for (const UnconnectedNodes& nodes : all)
    factor = std::max(factor, proposed(nodes, "cutoff_factor"));
  CHECK(factor > 0.45);
  CHECK(proposed(all[0], "max_neighbours") == 0.0);
  CHECK(explained(options_of(encoder(factor))).empty());
  CHECK_FALSE(explained(options_of(encoder(factor * 0.998))).empty());
}

TEST_CASE("a cap that is too small is named with the smallest that is not", "[unconnected]") {
  const auto encoder = [](int64_t most) {
    return concat(R"({"kind": "cutoff", "cutoff_factor": 1.0, "max_neighbours": )", most, "}");
  };
  const auto all = explained(options_of(encoder(3)));
  REQUIRE(all.size() == 1);
  INFO(all[0].reason);
  CHECK_THAT(all[0].reason, ContainsSubstring("cut off by graph.encoder.max_neighbours 3;"));
  CHECK(proposed(all[0], "cutoff_factor") == 0.0);
  const auto most = static_cast<int64_t>(proposed(all[0], "max_neighbours"));
  CHECK(most > 3);
  CHECK(explained(options_of(encoder(most))).empty());
  CHECK_FALSE(explained(options_of(encoder(most - 1))).empty());
}

TEST_CASE("too few neighbours are named with the fewest that reach all", "[unconnected]") {
  const auto encoder = [](int64_t k) {
    return concat(R"({"kind": "knn", "num_neighbours": )", k, "}");
  };
  const auto all = explained(options_of(encoder(1)));
  REQUIRE(all.size() == 1);
  INFO(all[0].reason);
  const auto k = static_cast<int64_t>(proposed(all[0], "num_neighbours"));
  CHECK(k > 1);
  CHECK(explained(options_of(encoder(k))).empty());
  CHECK_FALSE(explained(options_of(encoder(k - 1))).empty());
}

TEST_CASE("mesh nodes that hear no data are named with the radius that reaches them",
          "[unconnected]") {
  const auto encoder = [](double factor) {
    return concat(R"({"kind": "reversed_cutoff", "cutoff_factor": )", factor, "}");
  };
  const auto all = explained(options_of(encoder(0.3)));
  REQUIRE(all.size() == 2);
  const auto mesh = std::find_if(all.begin(), all.end(), [](const auto& u) { return !u.is_data; });
  REQUIRE(mesh != all.end());
  INFO(mesh->reason);
  CHECK(mesh->set == "hidden");
  const double factor =
      std::max(proposed(all[0], "cutoff_factor"), proposed(all[1], "cutoff_factor"));
  CHECK(explained(options_of(encoder(factor))).empty());
  CHECK_FALSE(explained(options_of(encoder(factor * 0.998))).empty());
}

TEST_CASE("without a recipe the distance is told", "[unconnected]") {
  Graph graph;
  graph.node_sets = {{"data", {0.0F, 0.1F, 0.3F}, {0.0F, 0.0F, 0.0F}, {}},
                     {"hidden", {0.0F}, {0.0F}, {}}};
  graph.edge_sets = {{"data", "hidden", {0}, {0}, {}}, {"hidden", "data", {0, 0}, {0, 1}, {}}};
  std::vector<UnconnectedNodes> all = unconnected_nodes(degrees_of(graph));
  REQUIRE(all.size() == 2);
  CHECK(all[0].nodes == std::vector<int32_t>{1, 2});
  CHECK(all[0].text() == "2 of 3 (67 %) data nodes have no edge to 'hidden'");
  CHECK(all[1].nodes == std::vector<int32_t>{2});
  CHECK(all[1].text() == "1 of 3 (33 %) data nodes have no edge from 'hidden'");
  explain(all, graph, nullptr);
  CHECK_THAT(all[0].reason, ContainsSubstring("up to 1911 km away"));  // 0.3 of 6371 km
}

TEST_CASE("nodes outside of masks are said to take no part", "[unconnected]") {
  GraphOptions options = options_of(R"({"kind": "cutoff", "source_mask": "half"})");
  Graph graph = build_graph(options_of(R"({"kind": "cutoff"})"), {});
  graph.edge_sets[0].source_index = {0};
  graph.edge_sets[0].target_index = {0};
  std::vector<UnconnectedNodes> all = unconnected_nodes(degrees_of(graph));
  REQUIRE(all.size() == 2);
  const Recipe recipe = recipe_of(options, {"data"});
  explain(all, graph, &recipe);
  CHECK_THAT(all[0].reason, ContainsSubstring("graph.encoder has masks"));
}

TEST_CASE("edges within meshes leave nobody unconnected", "[unconnected]") {
  Graph graph;
  graph.node_sets = {{"a", {0.0F, 0.1F}, {0.0F, 0.0F}, {}}};
  graph.edge_sets = {{"a", "a", {0}, {0}, {}}};
  CHECK(unconnected_nodes(degrees_of(graph)).empty());
}
