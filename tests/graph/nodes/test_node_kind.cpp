// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/node_kind.h"

#include "core/check.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;
using namespace aifs::graph::samples;

TEST_CASE("coordinates that are none are named with the node", "[node_kind]") {
  const Sets none;
  const NodePlace place{.path = "p", .name = "n", .before = none};
  REQUIRE(place.at_degrees({{10.0}, {350.0}}).num_nodes() == 1);
  REQUIRE_THROWS_WITH(place.at_degrees({{1.0, 95.0}, {0.0, 7.0}}),
                      ContainsSubstring("nodes 'n': node 1 is at latitude 95, longitude 7"));
  REQUIRE_THROWS_WITH(place.at_degrees({{1.0, NAN}, {0.0, 7.0}}), ContainsSubstring("node 1 is"));
  REQUIRE_THROWS_WITH(place.at_degrees({{1.0}, {0.0, 7.0}}),
                      ContainsSubstring("1 latitudes and 2 longitudes"));
  REQUIRE_THROWS_WITH(place.at_degrees({{1.57, -1.5, 0.0}, {0.0, 3.1, 6.2}}),
                      ContainsSubstring("look like radians"));
}

TEST_CASE("an area lies around a set that stands before, or some of its nodes", "[node_kind]") {
  Sets before;
  before.emplace("data", at_degrees("data", {{0.0, 60.0}, {0.0, 90.0}}));
  before.at("data").set.attributes["m"] = {1, {0.0F, 1.0F}};
  const NodePlace place{.path = "p", .name = "n", .before = before};
  const std::vector<float> lat{0.0F, 1.0472F}, lon{0.0F, 1.5708F};
  AreaOptions area;
  REQUIRE(area.make(place)->inside(lat, lon) == std::vector<uint8_t>{1, 1});
  area.mask = "m";
  REQUIRE(area.make(place)->inside(lat, lon) == std::vector<uint8_t>{0, 1});
  area.mask = "x";
  REQUIRE_THROWS_WITH(area.make(place), ContainsSubstring("'p.mask': nodes 'data' have no mask"));
  area.reference = "dada";
  REQUIRE_THROWS_WITH(area.make(place), ContainsSubstring("'p.reference': no node set 'dada'"));
  before.at("data").set.attributes["m"].values = {0.0F, 0.0F};
  area = {.mask = "m"};
  REQUIRE_THROWS_WITH(area.make(place), ContainsSubstring("selects none"));
}

TEST_CASE("limiting keeps the order of the nodes inside", "[node_kind]") {
  const MeshNodes all = at_degrees("n", {{0.0, 50.0, 1.0}, {0.0, 0.0, 1.0}});
  const std::vector<float> zero{0.0F};
  const MeshNodes kept = limited_to(std::make_shared<AreaMask>(zero, zero, 500.0), all);
  REQUIRE(kept.set.lat_rad == std::vector<float>{all.set.lat_rad[0], all.set.lat_rad[2]});
  REQUIRE(kept.area != nullptr);
}
