// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/area_mask.h"

#include "core/check.h"
#include "graph/base/geometry.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

TEST_CASE("an area contains what is within the margin of a reference node", "[area_mask]") {
  const std::vector<float> lat{0.0F}, lon{0.0F};
  const AreaMask area(lat, lon, 1000.0);
  const auto edge = static_cast<float>(1000.0 / kEarthRadius_km);
  const std::vector<float> lats{0.0F, 0.99F * edge, 1.01F * edge, 0.0F},
      lons{0.0F, 0.0F, 0.0F, static_cast<float>(2 * kPi) - 0.5F * edge};
  REQUIRE(area.inside(lats, lons) == std::vector<uint8_t>{1, 1, 0, 1});
}

TEST_CASE("an area needs reference nodes and a positive margin", "[area_mask]") {
  const std::vector<float> none, one{0.0F};
  REQUIRE_THROWS_WITH(AreaMask(none, none, 100.0), ContainsSubstring("reference nodes"));
  REQUIRE_THROWS_WITH(AreaMask(one, one, 0.0), ContainsSubstring("got 0 km"));
}
