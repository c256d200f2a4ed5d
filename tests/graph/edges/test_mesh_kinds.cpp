// SPDX-License-Identifier: Apache-2.0
#include "graph/edges/mesh_kinds.h"

#include <algorithm>

#include "core/check.h"
#include "graph/nodes/healpix.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;
using namespace aifs::graph::samples;

TEST_CASE("multi-scale edges have the levels asked for", "[mesh_kinds]") {
  const MeshNodes tri = nodes_of(R"({"kind": "tri", "refinement": 3})");
  const auto count = [&](const char* text) { return edges_of(text, tri, tri).num_edges(); };
  REQUIRE(count(R"({"kind": "multi_scale"})") == 5040);
  REQUIRE(count(R"({"kind": "multi_scale", "include_level_0": true})") == 5100);
  REQUIRE(count(R"({"kind": "multi_scale", "levels": [3]})") == 3840);
  REQUIRE(count(R"({"kind": "multi_scale", "x_hops": 2})") == 13740);
  REQUIRE_THROWS_WITH(count(R"({"kind": "multi_scale", "levels": [4]})"),
                      ContainsSubstring("'graph.edges.0.kinds.0.levels'"));
}

TEST_CASE("pixels have no edges to neighbours that there are not", "[mesh_kinds]") {
  const MeshNodes pixels = nodes_of(R"({"kind": "healpix", "resolution": 2})");
  const EdgeList edges = edges_of(R"({"kind": "healpix_multi_scale"})", pixels, pixels);
  REQUIRE(edges.num_edges() == 8 * 48 + 8 * 192 - 2 * 24);
  REQUIRE(*std::min_element(edges.target_index.begin(), edges.target_index.end()) == 0);
  REQUIRE(*std::max_element(edges.target_index.begin(), edges.target_index.end()) == 191);
}

TEST_CASE("edges of a mesh need its nodes, on both sides", "[mesh_kinds]") {
  const MeshNodes tri = nodes_of(R"({"kind": "tri", "refinement": 1})");
  MeshNodes grid = nodes_of(R"({"kind": "gaussian", "grid": "o8"})");
  grid.set.name = "grid";
  REQUIRE_THROWS_WITH(edges_of(R"({"kind": "multi_scale"})", grid, grid),
                      ContainsSubstring("'grid' are none"));
  REQUIRE_THROWS_WITH(edges_of(R"({"kind": "multi_scale"})", tri, grid),
                      ContainsSubstring("not 'n' and 'grid'"));
  for (const char* kind : {"healpix_multi_scale", "icon_mesh"})
    REQUIRE_THROWS_AS(edges_of(concat(R"({"kind": ")", kind, R"("})"), tri, tri), ConfigError);
  REQUIRE_THROWS_WITH(edges_of(R"({"kind": "icon_cells"})", tri, grid),
                      ContainsSubstring("of one file"));
}
