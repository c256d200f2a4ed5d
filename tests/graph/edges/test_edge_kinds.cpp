// SPDX-License-Identifier: Apache-2.0
// The table of edges.
#include <set>

#include "core/check.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;
using namespace aifs::graph::samples;

TEST_CASE("kinds of edges have names of their own, and one makes none", "[edge_kinds]") {
  std::set<std::string> names, none;
  for (const auto& kind : EdgeKind::kinds()) {
    names.insert(kind.name);
    if (kind.make()->is_none()) none.insert(kind.name);
  }
  REQUIRE(names.size() == EdgeKind::kinds().size());
  REQUIRE(none == std::set<std::string>{"none"});
  REQUIRE_THROWS_WITH(section<EdgeOptions>(R"({"kind": "radius"})"), ContainsSubstring("x.kind"));
}
