// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/tri_nodes.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "graph/edges/neighbour_edges.h"
#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

TEST_CASE("a limited area has the mesh nodes inside, in mesh order", "[tri_nodes]") {
  const std::vector<float> lat{0.7F}, lon{0.2F};
  const AreaMask area(lat, lon, 1500.0);
  const TriNodes all = tri_nodes(5), limited = limited_area_tri_nodes(5, area);
  std::vector<int32_t> expected;
  const auto inside = area.inside(all.lat_rad, all.lon_rad);
  for (size_t n = 0; n < inside.size(); ++n) {
    if (inside[n]) expected.push_back(all.vertex[n]);
  }
  REQUIRE(limited.vertex == expected);
  REQUIRE(limited.num_nodes() < all.num_nodes());
}

TEST_CASE("a stretched mesh is fine inside the area and coarse outside", "[tri_nodes]") {
  const std::vector<float> origin{0.0F};
  const AreaMask area(origin, origin, 400.0);
  const TriNodes nodes = stretched_tri_nodes(4, 6, area);
  REQUIRE(nodes.num_nodes() == 2598);
  REQUIRE(nodes.refinement == 6);
  const auto inside = area.inside(nodes.lat_rad, nodes.lon_rad);
  for (size_t n = 0; n < inside.size(); ++n) {
    if (!inside[n]) REQUIRE(nodes.vertex[n] < icosphere_vertices(4));
  }
  REQUIRE(
      reference_distance({nodes.lat_rad, nodes.lon_rad}, 1) ==
      Approx(reference_distance({tri_nodes(4).lat_rad, tri_nodes(4).lon_rad}, 1)).epsilon(1e-6));
  REQUIRE_THROWS_WITH(stretched_tri_nodes(5, 4, area), ContainsSubstring("coarser"));
}
