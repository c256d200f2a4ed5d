// SPDX-License-Identifier: Apache-2.0
#include "graph/edges/edge_attribute_kinds.h"

#include "core/check.h"
#include "graph/edges/neighbour_edges.h"
#include "tests/graph/graph_samples.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;
using namespace aifs::graph::samples;

namespace {

struct Edges {
  NodeSet source = random_nodes("s", 40, 3), target = random_nodes("t", 20, 4);
  EdgeList list = knn_edges(source, target, 3, 1);

  EdgeEnds ends() const { return {source, target, list.source_index, list.target_index, 1}; }
  EdgeValues<float> values(const std::string& text) const {
    return section<EdgeAttributeOptions>(text, "a").kind->make(ends(), "a", "a.norm");
  }
};

}  // namespace

TEST_CASE("every kind of edge attribute has the width that it tells", "[edge_attribute_kinds]") {
  Edges edges;
  edges.source.attributes["area_weight"] = {1, std::vector<float>(40, 2.0F)};
  edges.target.attributes["area_weight"] = {1, std::vector<float>(20, 3.0F)};
  for (const auto& kind : EdgeAttributeKind::kinds()) {
    INFO(kind.name);
    const auto own = kind.make();
    const EdgeValues<float> values = own->make(edges.ends(), "a", "a.norm");
    REQUIRE(values.width == own->width());
    REQUIRE(values.rows.size() == static_cast<size_t>(60 * values.width));
    const EdgeValues<double> twin = own->make_double(edges.ends(), "a");
    for (size_t i = 0; i < twin.rows.size(); ++i)
      REQUIRE(static_cast<double>(values.rows[i]) == Approx(twin.rows[i]).margin(1e-6));
  }
}

TEST_CASE("norms are over all edges, or over those of a target", "[edge_attribute_kinds]") {
  const Edges edges;
  const auto lengths = edge_length<float>(edges.ends());
  std::vector<float> scaled = lengths;
  normalise(Norm::kUnitMax, scaled);
  REQUIRE(edges.values(R"({"kind": "length", "norm": "unit-max"})").rows == scaled);
  REQUIRE(edges.values(R"({"kind": "length"})").rows == lengths);
  const auto weights = edges.values(R"({"kind": "gaussian_weight", "sigma": 0.3})").rows;
  std::vector<double> sums(20, 0.0);
  for (size_t e = 0; e < weights.size(); ++e)
    sums[static_cast<size_t>(edges.list.target_index[e])] += weights[e];
  for (const double sum_of_target : sums)
    REQUIRE(sum_of_target == Approx(1.0).epsilon(1e-6));
}

TEST_CASE("attributes of edges that cannot be are named", "[edge_attribute_kinds]") {
  Edges edges;
  REQUIRE_THROWS_WITH(edges.values(R"({"kind": "of_source", "node_attribute": "areas"})"),
                      ContainsSubstring("'a.node_attribute': nodes 's' have no attribute 'areas'"));
  edges.source = edges.target;  // self edges only: no length
  edges.list = knn_edges(edges.source, edges.target, 1, 1);
  REQUIRE_THROWS_WITH(edges.values(R"({"kind": "length", "norm": "unit-max"})"),
                      ContainsSubstring("'a.norm'"));
}
