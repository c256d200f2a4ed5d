// SPDX-License-Identifier: Apache-2.0
#include "graph/edges/neighbour_kinds.h"

#include "core/check.h"
#include "tests/graph/graph_samples.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;
using namespace aifs::graph::samples;

namespace {

struct Sides {
  MeshNodes source{.set = random_nodes("s", 60, 1)}, target{.set = random_nodes("t", 30, 2)};

  Sides() {
    for (int i = 0; i < 60; ++i)
      source.set.attributes["m"].values.push_back(i % 3 == 0 ? 0.0F : 1.0F);
  }
  EdgeList edges(const std::string& text) const { return edges_of(text, source, target); }
};

bool equal(const EdgeList& a, const EdgeList& b) {
  return a.source_index == b.source_index && a.target_index == b.target_index;
}

}  // namespace

TEST_CASE("kinds of neighbours are the searches of their names, with masks", "[neighbour_kinds]") {
  const Sides sides;
  const NodeSet &s = sides.source.set, &t = sides.target.set;
  const std::vector<uint8_t> mask = sides.source.mask("m");
  REQUIRE(equal(sides.edges(R"({"kind": "knn", "num_neighbours": 4})"), knn_edges(s, t, 4, 1)));
  REQUIRE(
      equal(sides.edges(R"({"kind": "knn", "source_mask": "m"})"), knn_edges({s, mask}, t, 3, 1)));
  REQUIRE(equal(sides.edges(R"({"kind": "reversed_knn", "num_neighbours": 2})"),
                reversed_knn_edges(s, t, 2, 1)));
  REQUIRE(equal(
      sides.edges(R"({"kind": "mutual_knn", "num_neighbours": 5, "reversed_num_neighbours": 3})"),
      mutual_knn_edges(s, t, 5, 3, 1)));
  REQUIRE(equal(sides.edges(R"({"kind": "cutoff", "cutoff_factor": 1.2, "max_neighbours": 4})"),
                cut_off_edges(s, t, {1.2, {}, 4}, 1)));
  REQUIRE(equal(sides.edges(R"({"kind": "reversed_cutoff", "cutoff_distance_km": 3000})"),
                reversed_cut_off_edges(s, t, {{}, 3000.0, 64}, 1)));
}

TEST_CASE("a cut-off without a limit has all sources in reach", "[neighbour_kinds]") {
  const Sides sides;
  REQUIRE(sides.edges(R"({"kind": "cutoff", "cutoff_distance_km": 13000, "max_neighbours": 0})")
              .num_edges() == 60 * 30);
  REQUIRE(sides.edges(R"({"kind": "cutoff", "cutoff_distance_km": 13000, "max_neighbours": 7})")
              .num_edges() == 7 * 30);
}

TEST_CASE("numbers and masks that the nodes have not are named", "[neighbour_kinds]") {
  const Sides sides;
  REQUIRE_THROWS_WITH(sides.edges(R"({"kind": "knn", "num_neighbours": 61})"),
                      ContainsSubstring("'graph.edges.0.kinds.0.num_neighbours': 61 neighbours"));
  REQUIRE_THROWS_WITH(sides.edges(R"({"kind": "reversed_knn", "num_neighbours": 31})"),
                      ContainsSubstring("31 neighbours of 30"));
  REQUIRE_THROWS_WITH(sides.edges(R"({"kind": "knn", "target_mask": "m"})"),
                      ContainsSubstring("'graph.edges.0.kinds.0.target_mask'"));
}
