// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/edge_chunks.h"

#include <ATen/ATen.h>

#include "model/kernels/segment.h"
#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

using namespace aifs::model;
using aifs::test::max_difference;
using aifs::test::random_tensor;

TEST_CASE("sums of the chunks are the sums, bit for bit", "[edge_chunks]") {
  const auto index = aifs::test::random_edge_index(9, 7, 50, 5);
  const at::Tensor rows = random_tensor({50, 3}, 1);
  const at::Tensor whole = sum_edges(rows, *index, true);
  for (const int64_t count : {1, 2, 3, 7, 20}) {
    std::vector<at::Tensor> parts;
    int64_t edges = 0;
    for (const EdgeChunk& chunk : cut_by_targets(index, count)) {
      REQUIRE(chunk.first_edge == edges);
      edges += chunk.num_edges;
      parts.push_back(
          sum_edges(rows.narrow(0, chunk.first_edge, chunk.num_edges), *chunk.index, true));
      REQUIRE(at::equal(chunk.index->source,
                        index->source.narrow(0, chunk.first_edge, chunk.num_edges)));
    }
    REQUIRE(edges == 50);
    REQUIRE(max_difference(at::cat(parts), whole) == 0.0);
  }
}

TEST_CASE("the first ranges are the longer ones, and none is empty", "[edge_chunks]") {
  const auto index = aifs::test::random_edge_index(9, 7, 50, 5);
  std::vector<int64_t> sizes;
  for (const EdgeChunk& chunk : cut_by_targets(index, 3))
    sizes.push_back(chunk.num_targets);
  REQUIRE(sizes == std::vector<int64_t>{3, 2, 2});
  REQUIRE(cut_by_targets(index, 20).size() == 7);
}

TEST_CASE("pieces are cut once", "[edge_chunks]") {
  const auto index = aifs::test::random_edge_index(9, 7, 50, 5);
  const EdgeChunks chunks(2);
  REQUIRE(&chunks.of(index) == &chunks.of(index));
  REQUIRE(EdgeChunks(1).of(index)[0].index == index);
}
