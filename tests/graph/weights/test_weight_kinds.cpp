// SPDX-License-Identifier: Apache-2.0
#include "graph/weights/weight_kinds.h"

#include <cmath>

#include "core/check.h"
#include "graph/weights/planar_weights.h"
#include "tests/graph/graph_samples.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;
using namespace aifs::graph::samples;

TEST_CASE("weights of kinds are the library's, before they are scaled", "[weight_kinds]") {
  MeshNodes nodes{.set = lattice_nodes("n", 5, 6)};
  for (int i = 0; i < 30; ++i)
    nodes.set.attributes["m"].values.push_back(i < 20 ? 1.0F : 0.0F);
  const auto raw = [&](const char* text) {
    return section<NodeAttributeOptions>(text).kind->raw(nodes, 1, "a");
  };
  REQUIRE(raw(R"({"kind": "uniform"})") == std::vector<double>(30, 1.0));
  REQUIRE(raw(R"({"kind": "planar"})") ==
          planar_weights(nodes.set.lat_rad, nodes.set.lon_rad, 1).areas);
  const auto masked = raw(R"({"kind": "masked_planar", "mask": "m"})");
  REQUIRE(masked[3] > 0.0);
  REQUIRE(masked[25] == 0.0);
  const auto cosine = raw(R"({"kind": "cosine_latitude", "min_value": 1, "max_value": 3})");
  REQUIRE(cosine[0] == Approx(1.0 + 2.0 * std::cos(0.7)).epsilon(1e-7));
  REQUIRE_THROWS_WITH(raw(R"({"kind": "masked_planar", "mask": "x"})"),
                      ContainsSubstring("'a.mask'"));
}
