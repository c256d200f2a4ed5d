// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/grid_kinds.h"

#include "core/check.h"
#include "graph/nodes/gaussian_grid.h"
#include "graph/nodes/healpix.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;
using namespace aifs::graph::samples;

TEST_CASE("Gaussian grids and HEALPix are nodes at their points", "[grid_kinds]") {
  const Coordinates o8 = gaussian_coordinates(parse_gaussian_grid("o8"));
  REQUIRE(nodes_of(R"({"kind": "gaussian", "grid": "o8"})").set.lat_rad ==
          radians_from_degrees(o8.lat_deg));
  const MeshNodes pixels = nodes_of(R"({"kind": "healpix", "resolution": 2})");
  REQUIRE(pixels.set.num_nodes() == 192);
  REQUIRE(pixels.healpix_resolution == 2);
  REQUIRE_THROWS_WITH(nodes_of(R"({"kind": "gaussian", "grid": "x8"})"),
                      ContainsSubstring("'graph.nodes.n.grid'"));
}

TEST_CASE("a limited HEALPix grid is no whole one", "[grid_kinds]") {
  Sets before;
  before.emplace("data", at_degrees("data", {{10.0}, {20.0}}));
  const MeshNodes part =
      nodes_of(R"({"kind": "limited_area_healpix", "resolution": 4, "margin_km": 1500})", before);
  REQUIRE(part.set.num_nodes() > 4);
  REQUIRE(part.set.num_nodes() < 300);
  REQUIRE(part.healpix_resolution == 0);
}

TEST_CASE("cells are those of the dataset of the set's name", "[grid_kinds]") {
  const Coordinates cells{{1.0, 2.0}, {3.0, 4.0}}, none;
  REQUIRE(nodes_of(R"({"kind": "dataset"})", {}, &cells).set.num_nodes() == 2);
  REQUIRE_THROWS_WITH(nodes_of(R"({"kind": "dataset"})"),
                      ContainsSubstring("the run has no dataset 'n'"));
  REQUIRE_THROWS_WITH(nodes_of(R"({"kind": "dataset"})", {}, &none),
                      ContainsSubstring("no coordinates"));
}
