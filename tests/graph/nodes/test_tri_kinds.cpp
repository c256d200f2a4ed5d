// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/tri_kinds.h"

#include "core/check.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;
using namespace aifs::graph::samples;

TEST_CASE("icospheres are global, limited to an area, or refined in it", "[tri_kinds]") {
  Sets before;
  before.emplace("data", at_degrees("data", {{0.0}, {0.0}}));
  const MeshNodes whole = nodes_of(R"({"kind": "tri", "refinement": 2})");
  REQUIRE(whole.set.num_nodes() == 162);
  REQUIRE(whole.tri->refinement == 2);
  const MeshNodes area = nodes_of(
      R"({"kind": "limited_area_tri", "refinement": 4, "reference": "data", "margin_km": 900})",
      before);
  const AreaMask mask(before.at("data").set.lat_rad, before.at("data").set.lon_rad, 900.0);
  REQUIRE(area.tri->vertex == limited_area_tri_nodes(4, mask).vertex);
  REQUIRE(area.set.lat_rad == area.tri->lat_rad);
  // Counted by the reference: docs of graphs, section 1.14.
  const MeshNodes stretched = nodes_of(
      R"({"kind": "stretched_tri", "global_refinement": 4, "local_refinement": 6,
          "margin_km": 400})",
      before);
  REQUIRE(stretched.set.num_nodes() == 2598);
  REQUIRE(stretched.area != nullptr);
}

TEST_CASE("a stretched mesh is not coarser in its area", "[tri_kinds]") {
  REQUIRE_THROWS_WITH(
      section<NodeSetOptions>(
          R"({"kind": "stretched_tri", "global_refinement": 5, "local_refinement": 4})"),
      ContainsSubstring("'x.local_refinement': is 4, coarser"));
}
