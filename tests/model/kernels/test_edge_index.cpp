// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/edge_index.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/small_graph.h"

using namespace aifs;
using namespace aifs::model;

namespace {

using Indices = std::vector<int64_t>;

Indices list(const at::Tensor& values) {
  const at::Tensor wide = values.to(at::kLong).contiguous();
  return {wide.const_data_ptr<int64_t>(), wide.const_data_ptr<int64_t>() + wide.numel()};
}

at::Tensor ints(const std::vector<int32_t>& values) {
  return at::tensor(at::ArrayRef<int32_t>(values), at::kInt);
}

// The edges of every node, counted one by one, in edge order.
std::vector<Indices> edges_of_nodes(const Indices& node_of_edge, int64_t num_nodes) {
  std::vector<Indices> result(static_cast<size_t>(num_nodes));
  for (size_t e = 0; e < node_of_edge.size(); ++e)
    result[static_cast<size_t>(node_of_edge[e])].push_back(static_cast<int64_t>(e));
  return result;
}

// Returns this from row pointers and a list of edges.
std::vector<Indices> edges_from_rows(const at::Tensor& begin, const Indices& edges) {
  const Indices starts = list(begin);
  std::vector<Indices> result;
  for (size_t i = 0; i + 1 < starts.size(); ++i)
    result.emplace_back(edges.begin() + starts[i], edges.begin() + starts[i + 1]);
  return result;
}

void check_rows(const EdgeIndex& index) {
  Indices all;
  for (int64_t e = 0; e < index.num_edges; ++e)
    all.push_back(e);
  REQUIRE(edges_from_rows(index.target_begin, all) ==
          edges_of_nodes(list(index.target), index.num_targets));
  REQUIRE(edges_from_rows(index.source_begin, list(index.source_edges)) ==
          edges_of_nodes(list(index.source), index.num_sources));
}

}  // namespace

TEST_CASE("row pointers list the edges of every node, also of nodes without any", "[edge_index]") {
  for (const int64_t num_edges : {0, 1, 40, 900}) {
    INFO(num_edges << " edges");
    const auto index = test::random_edge_index(17, 9, num_edges, 3);
    REQUIRE(index->num_edges == num_edges);
    check_rows(*index);
  }
}

TEST_CASE("repetition puts shifted copies one after another", "[edge_index]") {
  const auto base = test::random_edge_index(7, 5, 30, 4);
  const auto thrice = base->repeat(3);
  REQUIRE(thrice->num_sources == 21);
  REQUIRE(thrice->num_targets == 15);
  REQUIRE(thrice->num_edges == 90);
  for (int64_t copy = 0; copy < 3; ++copy) {
    REQUIRE(list(thrice->source.narrow(0, 30 * copy, 30)) == list(base->source + 7 * copy));
    REQUIRE(list(thrice->target.narrow(0, 30 * copy, 30)) == list(base->target + 5 * copy));
  }
  check_rows(*thrice);
}

TEST_CASE("indices are kept as 32-bit integers whatever comes in", "[edge_index]") {
  const auto index =
      EdgeIndex::create(ints({1, 0}).to(at::kLong), ints({0, 1}).to(at::kLong), 2, 2);
  for (const at::Tensor& tensor : {index->source, index->target, index->target_begin,
                                   index->source_begin, index->source_edges})
    REQUIRE(tensor.scalar_type() == at::kInt);
}

TEST_CASE("unsorted or impossible edges are refused", "[edge_index]") {
  REQUIRE_THROWS_WITH(EdgeIndex::create(ints({0, 0}), ints({1, 0}), 1, 2),
                      ContainsSubstring("not sorted by target at 1"));
  REQUIRE_THROWS_WITH(EdgeIndex::create(ints({2}), ints({0}), 2, 1),
                      ContainsSubstring("edge 0 joins 2 and 0"));
  REQUIRE_THROWS_AS(EdgeIndex::create(ints({-1}), ints({0}), 2, 1), Error);
  REQUIRE_THROWS_AS(EdgeIndex::create(ints({0}), ints({1}), 2, 1), Error);
  REQUIRE_THROWS_AS(EdgeIndex::create(ints({0, 0}), ints({0}), 1, 1), Error);
}
