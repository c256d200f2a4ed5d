// SPDX-License-Identifier: Apache-2.0
#include "graph/edges/neighbour_edges.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/check.h"
#include "graph/base/geometry.h"
#include "graph/nodes/tri_nodes.h"
#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

namespace {

using Pairs = std::vector<std::pair<int32_t, int32_t>>;

Pairs pairs(const EdgeList& edges) {
  Pairs result;
  for (size_t e = 0; e < edges.source_index.size(); ++e)
    result.emplace_back(edges.source_index[e], edges.target_index[e]);
  return result;
}

std::set<std::pair<int32_t, int32_t>> as_set(const EdgeList& edges) {
  const Pairs list = pairs(edges);
  return {list.begin(), list.end()};
}

// Edges to every searching node from the nodes found, by trying all: at most `most` of those within
// `radius`, nearest first.
EdgeList try_all(const NodeSet& found, const NodeSet& searching, double radius, size_t most,
                 const std::vector<uint8_t>& found_mask = {},
                 const std::vector<uint8_t>& searching_mask = {}) {
  const auto from = unit_vectors<float>(found.lat_rad, found.lon_rad);
  const auto to = unit_vectors<float>(searching.lat_rad, searching.lon_rad);
  EdgeList edges;
  for (size_t t = 0; t < to.size(); ++t) {
    if (!searching_mask.empty() && !searching_mask[t]) continue;
    std::vector<std::pair<double, int32_t>> candidates;
    for (size_t s = 0; s < from.size(); ++s) {
      const double distance2 = squared_distance(from[s], to[t]);
      if ((found_mask.empty() || found_mask[s]) && distance2 <= radius * radius)
        candidates.emplace_back(distance2, static_cast<int32_t>(s));
    }
    std::sort(candidates.begin(), candidates.end());
    for (size_t i = 0; i < std::min(most, candidates.size()); ++i)
      edges.add(candidates[i].second, static_cast<int32_t>(t));
  }
  return edges;
}

std::vector<uint8_t> every_third(const NodeSet& nodes, size_t first) {
  std::vector<uint8_t> mask(nodes.lat_rad.size(), 0);
  for (size_t i = first; i < mask.size(); i += 3)
    mask[i] = 1;
  return mask;
}

NodeSet tri_set(int64_t refinement) {
  const TriNodes mesh = tri_nodes(refinement);
  return {concat("tri", refinement), mesh.lat_rad, mesh.lon_rad, {}};
}

constexpr double kEverywhere = 3.0;

}  // namespace

TEST_CASE("nearest neighbours agree with brute force, ties and masks included",
          "[neighbour_edges]") {
  const NodeSet random = samples::random_nodes("a", 200, 1),
                other = samples::random_nodes("b", 90, 2);
  const NodeSet lattice = samples::lattice_nodes("c", 9, 11),
                tied = samples::lattice_nodes("d", 6, 6);
  for (const auto& [source, target] : {std::pair{random, other}, std::pair{lattice, tied}}) {
    REQUIRE(pairs(knn_edges(source, target, 4, 2)) ==
            pairs(try_all(source, target, kEverywhere, 4)));
    const auto from = every_third(source, 1), to = every_third(target, 0);
    REQUIRE(pairs(knn_edges({source, from}, {target, to}, 4, 2)) ==
            pairs(try_all(source, target, kEverywhere, 4, from, to)));
  }
}

TEST_CASE("a cut-off agrees with brute force, cap, ties and masks included", "[neighbour_edges]") {
  const NodeSet source = samples::random_nodes("a", 300, 3),
                target = samples::random_nodes("b", 80, 4);
  const CutOff cut_off{1.7, std::nullopt, 5};
  const double radius = cut_off.radius(target, 1);
  REQUIRE(radius == 1.7 * reference_distance(target, 1));
  REQUIRE(pairs(cut_off_edges(source, target, cut_off, 2)) ==
          pairs(try_all(source, target, radius, 5)));
  const auto from = every_third(source, 0), to = every_third(target, 2);
  REQUIRE(pairs(cut_off_edges({source, from}, {target, to}, cut_off, 2)) ==
          pairs(try_all(source, target, radius, 5, from, to)));
  const NodeSet lattice = samples::lattice_nodes("c", 9, 11);
  REQUIRE(pairs(cut_off_edges(lattice, lattice, {1.0, std::nullopt, 64}, 1)) ==
          pairs(try_all(lattice, lattice, reference_distance(lattice, 1), 64)));
}

TEST_CASE("reversed builders swap the roles of source and target", "[neighbour_edges]") {
  const NodeSet a = samples::random_nodes("a", 120, 5), b = samples::random_nodes("b", 70, 6);
  const auto swapped = [](EdgeList edges) {
    std::swap(edges.source_index, edges.target_index);
    return pairs(edges);
  };
  REQUIRE(pairs(reversed_knn_edges(a, b, 3, 1)) == swapped(knn_edges(b, a, 3, 1)));
  const CutOff cut_off{1.1, std::nullopt, 64};
  REQUIRE(pairs(reversed_cut_off_edges(a, b, cut_off, 1)) ==
          swapped(cut_off_edges(b, a, cut_off, 1)));
}

TEST_CASE("mutual neighbours are the intersection of both directions", "[neighbour_edges]") {
  const NodeSet a = samples::random_nodes("a", 120, 7), b = samples::random_nodes("b", 70, 8);
  const auto forward = as_set(knn_edges(a, b, 5, 1)),
             backward = as_set(reversed_knn_edges(a, b, 3, 1));
  std::set<std::pair<int32_t, int32_t>> both;
  std::set_intersection(forward.begin(), forward.end(), backward.begin(), backward.end(),
                        std::inserter(both, both.end()));
  const EdgeList mutual = mutual_knn_edges(a, b, 5, 3, 1);
  REQUIRE(as_set(mutual) == both);
  REQUIRE(std::is_sorted(mutual.target_index.begin(), mutual.target_index.end()));
}

TEST_CASE("a distance in km is a chord of the unit sphere", "[neighbour_edges]") {
  const NodeSet a = samples::random_nodes("a", 200, 9), b = samples::random_nodes("b", 100, 10);
  REQUIRE(CutOff{std::nullopt, 637.1, 64}.radius(b, 1) == Approx(0.1).epsilon(1e-15));
  REQUIRE(pairs(cut_off_edges(a, b, {std::nullopt, 1911.3, 64}, 1)) ==
          pairs(try_all(a, b, 1911.3 / kEarthRadius_km, 64)));
}

TEST_CASE("the reference distance is the largest distance to the next node", "[neighbour_edges]") {
  const NodeSet nodes = samples::random_nodes("a", 300, 11);
  const auto points = unit_vectors<float>(nodes.lat_rad, nodes.lon_rad);
  double most = 0.0;
  for (size_t i = 0; i < points.size(); ++i) {
    double nearest = 9.0;
    for (size_t j = 0; j < points.size(); ++j) {
      if (i != j) nearest = std::min(nearest, squared_distance(points[i], points[j]));
    }
    most = std::max(most, nearest);
  }
  REQUIRE(reference_distance(nodes, 2) == std::sqrt(most));
  NodeSet doubled = nodes;  // copies at the same place do not count
  doubled.lat_rad.push_back(nodes.lat_rad[0]);
  doubled.lon_rad.push_back(nodes.lon_rad[0]);
  REQUIRE(reference_distance(doubled, 1) <= std::sqrt(most));
}

TEST_CASE("edges of larger graphs have the counts of the reference", "[neighbour_edges]") {
  struct Row {
    const char* grid;
    int64_t refinement;
    double reference_distance;
    int64_t cut_off_edges;
  };
  for (const Row& row :
       {Row{"o32", 3, 0.15845951566, 7568}, Row{"o96", 5, 0.04123191485, 62980},
        Row{"o96", 4, 0.08177603023, 62544}, Row{"o96", 6, 0.02065988975, 64208}}) {
    const NodeSet data = samples::gaussian_nodes("data", row.grid),
                  hidden = tri_set(row.refinement);
    REQUIRE(std::abs(reference_distance(hidden, 0) - row.reference_distance) < 1e-7);
    const EdgeList encoder = cut_off_edges(data, hidden, {0.6, std::nullopt, 64}, 0);
    REQUIRE(encoder.num_edges() == row.cut_off_edges);
    REQUIRE(knn_edges(hidden, data, 3, 0).num_edges() == 3 * data.num_nodes());
  }
}

TEST_CASE("N320 to refinement 6 has 852 840 edges, up to the few that lie on the radius",
          "[neighbour_edges]") {
  const auto pair = samples::reference_json("golden_graphs.json")["pairs"]["n320->tri6"];
  const NodeSet data = samples::gaussian_nodes("data", "n320"), hidden = tri_set(6);
  REQUIRE(std::abs(reference_distance(hidden, 0) - pair["ref_dist_hidden"].get<double>()) < 1e-7);
  const EdgeList encoder = cut_off_edges(data, hidden, {0.6, std::nullopt, 64}, 0);
  REQUIRE(encoder.num_edges() >= 852816);  // with a radius smaller by 1e-7
  REQUIRE(encoder.num_edges() <= 852854);  // larger by 1e-7
  const EdgeList decoder = knn_edges(hidden, data, 3, 0);
  REQUIRE(decoder.num_edges() == pair["knn3_edges"].get<int64_t>());
  const auto from = unit_vectors<float>(hidden.lat_rad, hidden.lon_rad);
  const auto to = unit_vectors<float>(data.lat_rad, data.lon_rad);
  double chords = 0.0;
  for (size_t e = 0; e < decoder.source_index.size(); ++e) {
    chords += std::sqrt(squared_distance(from[static_cast<size_t>(decoder.source_index[e])],
                                         to[static_cast<size_t>(decoder.target_index[e])]));
  }
  REQUIRE(chords == Approx(pair["knn3_sum_chord"].get<double>()).epsilon(1e-7));
}

TEST_CASE("O96 to refinement 5 has exactly the edges of the reference", "[neighbour_edges]") {
  const auto pair = samples::reference_json("golden_graphs.json")["pairs"]["o96->tri5"];
  const EdgeList edges =
      cut_off_edges(samples::gaussian_nodes("data", "o96"), tri_set(5), {0.6, std::nullopt, 64}, 0);
  REQUIRE(edges.num_edges() == pair["cutoff_edges_uncapped"].get<int64_t>());
  REQUIRE(samples::sum(edges.source_index) == pair["sum_src"].get<double>());
  REQUIRE(samples::sum(edges.target_index) == pair["sum_dst_canonical"].get<double>());
  REQUIRE(samples::sum_of_products(edges) == pair["sum_src_dst_mod2^64"].get<uint64_t>());
}

TEST_CASE("results do not depend on the number of threads", "[neighbour_edges]") {
  const NodeSet data = samples::gaussian_nodes("data", "o32"), hidden = tri_set(3);
  REQUIRE(pairs(knn_edges(hidden, data, 3, 1)) == pairs(knn_edges(hidden, data, 3, 3)));
  const CutOff cut_off{0.6, std::nullopt, 8};
  REQUIRE(pairs(cut_off_edges(data, hidden, cut_off, 1)) ==
          pairs(cut_off_edges(data, hidden, cut_off, 3)));
}

TEST_CASE("impossible requests are refused with the numbers", "[neighbour_edges]") {
  const NodeSet a = samples::random_nodes("a", 10, 12), b = samples::random_nodes("b", 5, 13);
  REQUIRE_THROWS_WITH(knn_edges(b, a, 6, 1), ContainsSubstring("6 nearest neighbours among 5"));
  REQUIRE_THROWS_WITH(knn_edges(b, a, 0, 1), ContainsSubstring("must be positive"));
  REQUIRE_THROWS_WITH(cut_off_edges(a, b, {}, 1), ContainsSubstring("either a factor or"));
  REQUIRE_THROWS_WITH(cut_off_edges(a, b, {1.0, 100.0, 64}, 1), ContainsSubstring("either"));
  REQUIRE_THROWS_WITH(cut_off_edges(a, b, {-1.0, std::nullopt, 64}, 1), ContainsSubstring("-1"));
  REQUIRE_THROWS_WITH(cut_off_edges(a, b, {1.0, std::nullopt, 0}, 1), ContainsSubstring("got 0"));
  REQUIRE_THROWS_WITH(reference_distance(samples::random_nodes("c", 1, 1), 1),
                      ContainsSubstring("no reference distance"));
  REQUIRE_THROWS_WITH(knn_edges({a, std::vector<uint8_t>(3, 1)}, b, 1, 1),
                      ContainsSubstring("a mask of 3 values for 10 nodes"));
}

TEST_CASE("nothing in range is an empty list", "[neighbour_edges]") {
  const NodeSet a = samples::random_nodes("a", 10, 14), b = samples::random_nodes("b", 5, 15);
  REQUIRE(cut_off_edges(a, b, {std::nullopt, 1e-3, 64}, 1).num_edges() == 0);
}

TEST_CASE("turning the sphere about its axis turns the edges with it", "[neighbour_edges]") {
  const NodeSet source = samples::random_nodes("s", 4000, 21),
                target = samples::random_nodes("t", 1500, 22);
  const auto points = unit_vectors<float>(source.lat_rad, source.lon_rad);
  const auto places = unit_vectors<float>(target.lat_rad, target.lon_rad);
  const EdgeList edges = knn_edges(source, target, 3, 2);
  for (const double angle : {-3.0, 0.7, 3.14159, 6.0}) {
    const auto turned = [&](NodeSet nodes) {
      for (float& lon : nodes.lon_rad)
        lon = static_cast<float>(std::remainder(static_cast<double>(lon) + angle, 2 * kPi));
      return nodes;
    };
    const EdgeList after = knn_edges(turned(source), turned(target), 3, 2);
    REQUIRE(after.target_index == edges.target_index);
    // Rounding may swap sources that are equally far to within 1e-6.
    for (size_t e = 0; e < edges.source_index.size(); ++e) {
      const auto t = static_cast<size_t>(edges.target_index[e]);
      const auto distance = [&](int32_t s) {
        return std::sqrt(squared_distance(points[static_cast<size_t>(s)], places[t]));
      };
      REQUIRE(std::abs(distance(after.source_index[e]) - distance(edges.source_index[e])) < 1e-6);
    }
    size_t num_equal = 0;
    for (size_t e = 0; e < edges.source_index.size(); ++e)
      num_equal += after.source_index[e] == edges.source_index[e] ? 1 : 0;
    REQUIRE(num_equal > edges.source_index.size() - 20);
  }
}

TEST_CASE("a mask that selects no source gives no edge", "[neighbour_edges]") {
  const NodeSet nodes = samples::random_nodes("n", 50, 1);
  const std::vector<uint8_t> none(50, 0);
  const CutOff wide{.factor = {}, .distance_km = 5000.0};
  REQUIRE(cut_off_edges({nodes, none}, nodes, wide, 1).num_edges() == 0);
  REQUIRE(cut_off_edges(nodes, {nodes, none}, wide, 1).num_edges() == 0);
  REQUIRE(knn_edges(nodes, {nodes, none}, 2, 1).num_edges() == 0);
  REQUIRE_THROWS_WITH(knn_edges({nodes, none}, nodes, 2, 1), ContainsSubstring("among 0 nodes"));
}
