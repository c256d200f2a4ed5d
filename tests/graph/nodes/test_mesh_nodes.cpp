// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/mesh_nodes.h"

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

TEST_CASE("a mask is 1 where its attribute is not 0", "[mesh_nodes]") {
  MeshNodes nodes{.set = {"n", {0.0F, 0.1F, 0.2F}, {0.0F, 0.0F, 0.0F}, {}}};
  nodes.set.attributes["m"] = {1, {0.0F, 0.5F, -1.0F}};
  nodes.set.attributes["wide"] = {2, {0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F}};
  REQUIRE(nodes.mask("m") == std::vector<uint8_t>{0, 1, 1});
  REQUIRE_THROWS_WITH(nodes.mask("wide"), ContainsSubstring("nodes 'n' have no mask 'wide'"));
  REQUIRE_THROWS_AS(nodes.mask("x"), Error);
}
