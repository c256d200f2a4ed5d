// SPDX-License-Identifier: Apache-2.0
// Every kind of nodes by its JSON.
#include <set>

#include "core/check.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;
using namespace aifs::graph::samples;

TEST_CASE("kinds of nodes have names of their own, tri first", "[node_kinds]") {
  std::set<std::string> names;
  for (const auto& kind : NodeKind::kinds())
    names.insert(kind.name);
  REQUIRE(names.size() == NodeKind::kinds().size());
  REQUIRE(std::string(NodeKind::kinds().front().name) == "tri");
  REQUIRE_THROWS_WITH(nodes_of(R"({"kind": "hex"})"), ContainsSubstring("graph.nodes.n.kind"));
}

TEST_CASE("numbers that are told beforehand are those of the nodes", "[node_kinds]") {
  for (const char* text :
       {R"({"kind": "tri", "refinement": 3})", R"({"kind": "gaussian", "grid": "n16"})"}) {
    INFO(text);
    const auto options = section<NodeSetOptions>(text);
    REQUIRE(options.kind->num_nodes() == nodes_of(text).set.num_nodes());
  }
}
