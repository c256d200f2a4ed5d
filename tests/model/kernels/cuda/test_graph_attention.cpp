// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/graph_attention.h"

#include <ATen/ATen.h>

#include <cmath>

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

constexpr double kRounding = 1e-13;

struct Sizes {
  int64_t heads, width, edge_width, sources, targets, edges;
};

AttentionInputs random_inputs(const Sizes& s, uint64_t seed = 1) {
  return {random_tensor({s.targets, s.heads * s.width}, seed),
          random_tensor({s.targets, s.heads * s.edge_width}, seed + 1),
          random_tensor({s.sources, s.heads * s.width}, seed + 2),
          random_tensor({s.sources, s.heads * s.width}, seed + 3),
          random_tensor({s.edges, s.edge_width}, seed + 4)};
}

std::vector<at::Tensor> as_list(const AttentionInputs& in) {
  return {in.query, in.query_on_edges, in.key, in.value, in.edge_features};
}
AttentionInputs from_list(const std::vector<at::Tensor>& t) {
  return {t[0], t[1], t[2], t[3], t[4], 0.7};
}

// Attention as it is written in papers: keys and values of edges, softmax, weighted sum. `map`
// (H d, D) takes edge features to keys and values.
struct ByHand {
  at::Tensor query, key, value, e, map;
};
at::Tensor attention_by_hand(const ByHand& inputs, int64_t heads, const EdgeIndex& edges) {
  const auto& [query, key, value, e, map] = inputs;
  const int64_t width = query.size(1) / heads;
  at::Tensor out = at::zeros_like(query);
  for (int64_t i = 0; i < edges.num_targets; ++i) {
    for (int64_t h = 0; h < heads; ++h) {
      const auto head = [&](const at::Tensor& row) { return row.narrow(0, h * width, width); };
      std::vector<double> weights;
      std::vector<at::Tensor> values;
      double sum = 0.0;
      for (int64_t m = 0; m < edges.num_edges; ++m) {
        if (edges.target[m].item<int64_t>() != i) continue;
        const at::Tensor of_edge = at::mv(map, e[m]);
        const auto j = edges.source[m].item<int64_t>();
        const double score = at::dot(head(query[i]), head(key[j] + of_edge)).item<double>();
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(width))));
        values.push_back(head(value[j] + of_edge));
        sum += weights.back();
      }
      for (size_t k = 0; k < weights.size(); ++k)
        head(out[i]).add_(values[k], weights[k] / sum);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("bfloat16 inputs give the fp32 result, rounded", "[graph_attention]") {
  const auto edges = test::random_edge_index(9, 7, 30, 3);
  std::vector<at::Tensor> in;
  for (const auto& [rows, width] : {std::pair{7, 8}, {7, 6}, {9, 8}, {9, 8}, {30, 3}})
    in.push_back(random_tensor({rows, width}, in.size() + 1).to(at::kBFloat16));
  const auto run = [&](at::ScalarType type) {
    const auto as = [&](size_t i) { return in[i].to(type); };
    return graph_attention({as(0), as(1), as(2), as(3), as(4)}, 2, edges);
  };
  const AttentionSums narrow = run(at::kBFloat16), wide = run(at::kFloat);
  REQUIRE(narrow.nodes.scalar_type() == at::kBFloat16);
  REQUIRE(at::equal(narrow.nodes, wide.nodes.to(at::kBFloat16)));
  REQUIRE(at::equal(narrow.edges, wide.edges.to(at::kBFloat16)));
}

TEST_CASE("projected queries and sums are attention with features in keys and values",
          "[graph_attention]") {
  const Sizes s{3, 5, 4, 9, 6, 40};
  const auto edges = test::random_edge_index(s.sources, s.targets, s.edges, 5);
  const at::Tensor query = random_tensor({s.targets, 15}, 1),
                   key = random_tensor({s.sources, 15}, 2);
  const at::Tensor value = random_tensor({s.sources, 15}, 3), e = random_tensor({s.edges, 4}, 4);
  const at::Tensor map = random_tensor({15, 4}, 6), by_head = map.view({3, 5, 4});
  const at::Tensor on_edges =
      at::einsum("nhd,hdc->nhc", {query.view({-1, 3, 5}), by_head}).reshape({-1, 12});
  const AttentionSums sums =
      graph_attention({query, on_edges, key, value, e, 1.0 / std::sqrt(5.0)}, 3, edges);
  const at::Tensor out =
      sums.nodes +
      at::einsum("nhc,hdc->nhd", {sums.edges.view({-1, 3, 4}), by_head}).reshape({-1, 15});
  REQUIRE(max_difference(out, attention_by_hand({query, key, value, e, map}, 3, *edges)) <=
          kRounding);
}

TEST_CASE("the kernel equals gathers and index sums, values and gradients", "[graph_attention]") {
  for (const Sizes& s : {Sizes{1, 1, 1, 4, 3, 12}, Sizes{2, 8, 3, 11, 6, 60},
                         Sizes{3, 17, 12, 7, 5, 300}, Sizes{4, 16, 9, 30, 40, 200}}) {
    INFO(s.heads << " heads of " << s.width << ", " << s.edges << " edges");
    const auto edges = test::random_edge_index(s.sources, s.targets, s.edges, 5);
    std::vector<at::Tensor> ours = as_list(random_inputs(s)), plain = as_list(random_inputs(s));
    const at::Tensor w_nodes = random_tensor({s.targets, s.heads * s.width}, 20);
    const at::Tensor w_edges = random_tensor({s.targets, s.heads * s.edge_width}, 21);
    const auto run = [&](std::vector<at::Tensor>& in, const auto& attention) {
      for (at::Tensor& t : in)
        t.set_requires_grad(true);
      const AttentionSums sums = attention(from_list(in), s.heads, edges);
      ((sums.nodes * w_nodes).sum() + (sums.edges * w_edges).sum()).backward();
      return sums;
    };
    const AttentionSums a = run(ours, graph_attention), b = run(plain, graph_attention_plain);
    REQUIRE(max_difference(a.nodes, b.nodes) <= kRounding);
    REQUIRE(max_difference(a.edges, b.edges) <= kRounding);
    for (size_t k = 0; k < ours.size(); ++k)
      REQUIRE(max_difference(ours[k].grad(), plain[k].grad()) <= 100 * kRounding);
  }
}

TEST_CASE("graph attention has the gradients of finite differences", "[graph_attention]") {
  const Sizes s{2, 3, 2, 5, 4, 14};
  const auto edges = test::random_edge_index(s.sources, s.targets, s.edges, 5);
  for (const bool of_nodes : {true, false}) {
    const auto function = [&](const std::vector<at::Tensor>& in) {
      const AttentionSums sums = graph_attention(from_list(in), s.heads, edges);
      return of_nodes ? sums.nodes : sums.edges;
    };
    REQUIRE(test::gradient_error(function, as_list(random_inputs(s))) <=
            test::gradient_tolerance());
  }
}

TEST_CASE("a target without edges gets zero, one with a single edge its value",
          "[graph_attention]") {
  const auto edges = EdgeIndex::create(at::tensor({2}, at::kInt), at::tensor({1}, at::kInt), 3, 3);
  const AttentionInputs in = random_inputs({2, 4, 3, 3, 3, 1});
  const AttentionSums sums = graph_attention(in, 2, edges);
  REQUIRE(max_difference(sums.nodes[1], in.value[2]) == 0.0);
  REQUIRE(max_difference(sums.edges[1], in.edge_features[0].repeat({2})) == 0.0);
  for (const int64_t i : {0, 2}) {
    REQUIRE(sums.nodes[i].abs().max().item<double>() == 0.0);
    REQUIRE(sums.edges[i].abs().max().item<double>() == 0.0);
  }
}

TEST_CASE("without any edge there is nothing but zeros", "[graph_attention]") {
  const at::Tensor none = at::empty({0}, at::kInt);
  AttentionInputs in = random_inputs({2, 4, 3, 3, 3, 0});
  in.key.set_requires_grad(true);
  const AttentionSums sums = graph_attention(in, 2, EdgeIndex::create(none, none, 3, 3));
  REQUIRE(sums.nodes.abs().max().item<double>() == 0.0);
  sums.nodes.sum().backward();
  REQUIRE(in.key.grad().abs().max().item<double>() == 0.0);
}

TEST_CASE("large scores do not overflow", "[graph_attention]") {
  const Sizes s{2, 8, 3, 9, 5, 40};
  const auto edges = test::random_edge_index(s.sources, s.targets, s.edges, 5);
  AttentionInputs in = random_inputs(s);
  in.query = in.query * 1e4;
  const AttentionSums sums = graph_attention(in, 2, edges);
  REQUIRE(sums.nodes.isfinite().all().item<bool>());
  REQUIRE(max_difference(sums.nodes, graph_attention_plain(in, 2, edges).nodes) <= 1e-9);
}

TEST_CASE("rows of the wrong shape are refused", "[graph_attention]") {
  const Sizes s{2, 4, 3, 5, 4, 10};
  const auto edges = test::random_edge_index(s.sources, s.targets, s.edges, 5);
  AttentionInputs in = random_inputs(s);
  REQUIRE_THROWS_AS(graph_attention(in, 3, edges), Error);
  in.key = random_tensor({4, 8}, 1);
  REQUIRE_THROWS_AS(graph_attention(in, 2, edges), Error);
}
