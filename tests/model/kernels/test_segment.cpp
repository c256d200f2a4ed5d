// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/segment.h"

#include <ATen/ATen.h>

#include <limits>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::max_difference;
using test::random_tensor;

namespace {

// Sums edge by edge, in double.
at::Tensor summed_by_hand(const at::Tensor& edge_rows, const at::Tensor& node_of_edge,
                          int64_t num_nodes) {
  at::Tensor out = at::zeros({num_nodes, edge_rows.size(1)}, at::kDouble);
  for (int64_t e = 0; e < edge_rows.size(0); ++e)
    out[node_of_edge[e].item<int64_t>()] += edge_rows[e].to(at::kDouble);
  return out;
}

// [x_target[target] | x_source[source] | e].
at::Tensor concatenated(const at::Tensor& x_target, const at::Tensor& x_source, const at::Tensor& e,
                        const EdgeIndex& edges) {
  return at::cat(
      {x_target.index_select(0, edges.target), x_source.index_select(0, edges.source), e}, 1);
}

}  // namespace

TEST_CASE("sums over the edges of a node equal sums by hand", "[segment]") {
  const double epsilon = std::numeric_limits<double>::epsilon();
  for (const int64_t width : {1, 7, 16}) {
    for (const int64_t num_edges : {0, 1, 60, 3000}) {
      INFO(width << " columns, " << num_edges << " edges");
      const auto edges = test::random_edge_index(11, 6, num_edges, 5);
      const at::Tensor rows = random_tensor({num_edges, width}, 6);
      const double limit = static_cast<double>(num_edges) * epsilon * 10;  // |values| below 5
      REQUIRE(max_difference(sum_edges(rows, *edges, true),
                             summed_by_hand(rows, edges->target, 6)) <= limit);
      REQUIRE(max_difference(sum_edges(rows, *edges, false),
                             summed_by_hand(rows, edges->source, 11)) <= limit);
      // Nobody ends at the last target.
      REQUIRE(sum_at_targets(rows, edges)[5].abs().max().item<double>() == 0.0);
    }
  }
}

TEST_CASE("single precision sums in edge order, one after another", "[segment]") {
  const auto edges = test::random_edge_index(4, 3, 500, 7);
  const at::Tensor rows = random_tensor({500, 5}, 8).to(at::kFloat);
  at::Tensor expected = at::zeros({3, 5}, at::kFloat);
  for (int64_t e = 0; e < 500; ++e)
    expected[edges->target[e].item<int64_t>()] += rows[e];
  REQUIRE(at::equal(sum_edges(rows, *edges, true), expected));
}

TEST_CASE("rows of both ends are added to their edges", "[segment]") {
  const auto edges = test::random_edge_index(11, 6, 80, 9);
  const at::Tensor rows = random_tensor({80, 3}, 10), at_target = random_tensor({6, 3}, 11);
  const at::Tensor at_source = random_tensor({11, 3}, 12);
  const at::Tensor sum = rows.clone();
  add_node_rows_(sum, at_target, at_source, *edges);
  const at::Tensor expected =
      rows + (at_target.index_select(0, edges->target) + at_source.index_select(0, edges->source));
  REQUIRE(at::equal(sum, expected));
}

TEST_CASE("an edge linear is the linear of the concatenation", "[segment]") {
  const auto edges = test::random_edge_index(11, 6, 80, 13);
  const at::Tensor x_target = random_tensor({6, 4}, 14), x_source = random_tensor({11, 4}, 15);
  const at::Tensor e = random_tensor({80, 4}, 16), weight = random_tensor({5, 12}, 17);
  const at::Tensor bias = random_tensor({5}, 18);
  REQUIRE(max_difference(edge_linear(x_target, x_source, e, weight, bias, edges),
                         at::linear(concatenated(x_target, x_source, e, *edges), weight, bias)) <=
          1e-13);
}

TEST_CASE("gradients of a sum at targets are central differences", "[segment]") {
  const auto edges = test::random_edge_index(5, 4, 20, 19);
  const auto function = [&](const std::vector<at::Tensor>& in) {
    return sum_at_targets(in[0], edges).tanh();
  };
  REQUIRE(test::gradient_error(function, {random_tensor({20, 3}, 20)}) <=
          test::gradient_tolerance());
}

TEST_CASE("gradients of an edge linear are central differences", "[segment]") {
  const auto check = [](const EdgeIndexPtr& edges) {
    const auto function = [&](const std::vector<at::Tensor>& in) {
      return edge_linear(in[0], in[1], in[2], in[3], in[4], edges).tanh();
    };
    const std::vector<at::Tensor> inputs{random_tensor({edges->num_targets, 2}, 21),
                                         random_tensor({edges->num_sources, 2}, 22),
                                         random_tensor({edges->num_edges, 2}, 23),
                                         random_tensor({3, 6}, 24), random_tensor({3}, 25)};
    REQUIRE(test::gradient_error(function, inputs) <= test::gradient_tolerance());
  };
  const auto edges = test::random_edge_index(5, 4, 20, 26);
  check(edges);
  check(edges->repeat(2));
}

TEST_CASE("a graph without edges gives zeros and no messages", "[segment]") {
  const auto edges = test::random_edge_index(3, 2, 0, 27);
  REQUIRE(sum_at_targets(at::empty({0, 4}, at::kDouble), edges).abs().sum().item<double>() == 0.0);
  const at::Tensor x_target = random_tensor({2, 2}, 28).set_requires_grad(true);
  const at::Tensor out =
      edge_linear(x_target, random_tensor({3, 2}, 29), at::empty({0, 2}, at::kDouble),
                  random_tensor({3, 6}, 30), random_tensor({3}, 31), edges);
  REQUIRE(out.sizes() == at::IntArrayRef{0, 3});
  out.sum().backward();
  REQUIRE(x_target.grad().abs().sum().item<double>() == 0.0);
}

TEST_CASE("rows that do not fit the graph are refused", "[segment]") {
  const auto edges = test::random_edge_index(3, 2, 4, 32);
  REQUIRE_THROWS_WITH(sum_edges(at::ones({5, 2}), *edges, true),
                      ContainsSubstring("edge rows must have 4 rows"));
  REQUIRE_THROWS_WITH(add_node_rows_(at::ones({4, 2}), at::ones({3, 2}), at::ones({3, 2}), *edges),
                      ContainsSubstring("target rows must have 2 rows"));
}
