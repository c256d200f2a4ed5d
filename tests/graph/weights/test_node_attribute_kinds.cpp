// SPDX-License-Identifier: Apache-2.0
// The table of node attributes, and how they are scaled.
#include <algorithm>
#include <set>

#include "core/check.h"
#include "tests/graph/graph_samples.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;
using namespace aifs::graph::samples;

TEST_CASE("kinds of node attributes have names of their own, spherical first",
          "[node_attribute_kinds]") {
  std::set<std::string> names;
  for (const auto& kind : NodeAttributeKind::kinds())
    names.insert(kind.name);
  REQUIRE(names.size() == NodeAttributeKind::kinds().size());
  REQUIRE(std::string(NodeAttributeKind::kinds().front().name) == "spherical");
}

TEST_CASE("weights are scaled by their norm, in fp32 and in double", "[node_attribute_kinds]") {
  const MeshNodes nodes{.set = random_nodes("n", 50, 9)};
  const auto weights = section<NodeAttributeOptions>(R"({"kind": "spherical", "norm": "l1"})");
  REQUIRE(sum(node_values<double>(*weights.kind, nodes, 1, "a")) == Approx(1.0).epsilon(1e-12));
  REQUIRE(sum(node_values<float>(*weights.kind, nodes, 1, "a")) == Approx(1.0).epsilon(1e-6));
  const auto usual = section<NodeAttributeOptions>(R"({"kind": "spherical"})");
  const auto values = node_values<float>(*usual.kind, nodes, 1, "a");
  REQUIRE(*std::max_element(values.begin(), values.end()) == 1.0F);
}
