// SPDX-License-Identifier: Apache-2.0
#include "graph/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/edges/neighbour_edges.h"
#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

namespace {

// Nearest data of every mesh node, and back.
Graph sample_graph() {
  Graph graph;
  graph.node_sets = {samples::random_nodes("data", 300, 1), samples::random_nodes("hidden", 40, 2)};
  const auto add = [&](const char* source, const char* target, int64_t k) {
    EdgeList edges = knn_edges(graph.nodes(source), graph.nodes(target), k, 1);
    graph.edge_sets.push_back({source, target, edges.source_index, edges.target_index, {}});
  };
  add("data", "hidden", 5);
  add("hidden", "data", 3);
  return graph;
}

int64_t sum_of(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

}  // namespace

TEST_CASE("degrees are those that counting edge by edge gives", "[statistics]") {
  const Graph graph = sample_graph();
  const EdgeSetStatistics set = degrees_of(graph).edge_sets[0];
  const std::vector<int32_t>& sources = graph.edge_sets[0].source_index;
  REQUIRE(set.num_edges == 200);
  std::vector<int32_t> without;
  std::vector<int64_t> counts;
  double most = 0.0;
  for (int32_t node = 0; node < 300; ++node) {
    const auto degree = static_cast<size_t>(std::count(sources.begin(), sources.end(), node));
    if (degree == 0) without.push_back(node);
    counts.resize(std::max(counts.size(), degree + 1));
    ++counts[degree];
    most = std::max(most, static_cast<double>(degree));
  }
  REQUIRE_FALSE(without.empty());
  CHECK(set.sources.without == without);
  CHECK(set.sources.histogram.counts == counts);
  CHECK(set.sources.spread.min == 0.0);
  CHECK(set.sources.spread.mean == 200.0 / 300.0);
  CHECK(set.sources.spread.max == most);
  CHECK(set.targets.without.empty());
  CHECK(set.targets.histogram.first == 5.0);
  CHECK(set.targets.histogram.counts == std::vector<int64_t>{40});
}

TEST_CASE("many different degrees share the ranges of a histogram", "[statistics]") {
  std::vector<int32_t> index(1000, 0);
  index.push_back(2);
  const DegreeStatistics degrees = degree_statistics(index, 4);
  CHECK(sum_of(degrees.histogram.counts) == 4);
  CHECK(degrees.histogram.counts.size() <= 40);
  CHECK(degrees.histogram.counts.back() == 1);
  CHECK(degrees.histogram.width * static_cast<double>(degrees.histogram.counts.size()) > 1000.0);
  CHECK(degrees.without == std::vector<int32_t>{1, 3});
  CHECK(degree_statistics({}, 0).histogram.counts.empty());
}

TEST_CASE("lengths are arcs of great circles, whatever the number of threads", "[statistics]") {
  const Graph graph = sample_graph();
  const EdgeSet& edges = graph.edge_sets[1];
  const NodeSet& source = graph.nodes("hidden");
  const NodeSet& target = graph.nodes("data");
  const std::vector<float> lengths = edge_lengths_km(edges, source, target, 1);
  // Coordinates of unit vectors are rounded to float: a few 1e-7 of the Earth's radius.
  const double margin_km = 8 * std::numeric_limits<float>::epsilon() * kEarthRadius_km;
  double sum = 0.0;
  for (size_t e = 0; e < lengths.size(); ++e) {
    const auto s = static_cast<size_t>(edges.source_index[e]);
    const auto t = static_cast<size_t>(edges.target_index[e]);
    const double arc_km =
        kEarthRadius_km * great_circle_angle(source.lat_rad[s], source.lon_rad[s],
                                             target.lat_rad[t], target.lon_rad[t]);
    REQUIRE(std::abs(lengths[e] - arc_km) < margin_km);
    sum += lengths[e];
  }
  CHECK(edge_lengths_km(edges, source, target, 3) == lengths);
  const EdgeSetStatistics set = statistics_of(graph).edge_sets[1];
  CHECK(set.length_km.min == *std::min_element(lengths.begin(), lengths.end()));
  CHECK(set.length_km.max == *std::max_element(lengths.begin(), lengths.end()));
  CHECK(set.length_km.mean == Approx(sum / 900));
  CHECK(sum_of(set.lengths_km.counts) == 900);
}

TEST_CASE("a histogram counts each length in its range", "[statistics]") {
  const Graph graph = sample_graph();
  const EdgeSet& edges = graph.edge_sets[0];
  const Histogram histogram = statistics_of(graph).edge_sets[0].lengths_km;
  const std::vector<float> lengths =
      edge_lengths_km(edges, graph.nodes("data"), graph.nodes("hidden"), 1);
  for (size_t i = 0; i + 1 < histogram.counts.size(); ++i) {
    const double from = histogram.first + static_cast<double>(i) * histogram.width;
    const auto inside = std::count_if(lengths.begin(), lengths.end(), [&](float length) {
      return std::floor((length - histogram.first) / histogram.width) == static_cast<double>(i);
    });
    INFO("from " << from);
    CHECK(histogram.counts[i] == inside);
  }
}

TEST_CASE("the spread of an attribute is that of its finite values", "[statistics]") {
  Graph graph = sample_graph();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values(80, 1.0F);
  values[3] = -2.0F;
  values[5] = nan;
  values[7] = std::numeric_limits<float>::infinity();
  graph.node_sets[1].attributes["pair"] = {2, values};
  const AttributeStatistics pair = statistics_of(graph).node_sets[1].attributes.at(0);
  CHECK(pair.name == "pair");
  CHECK(pair.num_rows == 40);
  CHECK(pair.width == 2);
  CHECK(pair.num_nonfinite == 2);
  CHECK(pair.spread.min == -2.0);
  CHECK(pair.spread.max == 1.0);
  CHECK(pair.spread.mean == 75.0 / 78.0);
}

TEST_CASE("cells of datasets are told from meshes", "[statistics]") {
  NodeSet nodes{"hidden", {}, {}, {}};
  CHECK_FALSE(is_data(nodes));
  nodes.attributes["area_weight"] = {1, {}};
  CHECK(is_data(nodes));
  CHECK(is_data({"data", {}, {}, {}}));
}
