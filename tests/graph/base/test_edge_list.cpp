// SPDX-License-Identifier: Apache-2.0
#include "graph/base/edge_list.h"

#include "tests/support/catch.h"

using namespace aifs::graph;

TEST_CASE("merged edges are unique and sorted by source, then target", "[edge_list]") {
  const EdgeList a{{5, 1, 1}, {2, 7, 3}}, b{{1, 0, 5}, {3, 9, 2}};
  const EdgeList merged = merge_edges(a, b);
  REQUIRE(merged.source_index == std::vector<int32_t>{0, 1, 1, 5});
  REQUIRE(merged.target_index == std::vector<int32_t>{9, 3, 7, 2});
  REQUIRE(merge_edges({}, {}).num_edges() == 0);
}

TEST_CASE("merging counts large node numbers right", "[edge_list]") {
  const int32_t large = 2147483646;
  const EdgeList merged = merge_edges({{large}, {0}}, {{0}, {large}});
  REQUIRE(merged.source_index == std::vector<int32_t>{0, large});
  REQUIRE(merged.target_index == std::vector<int32_t>{large, 0});
}
