// SPDX-License-Identifier: Apache-2.0
// The vectors are from appendix A.2 of the specification of training.
#include "train/loss/graph_loss.h"

#include <ATen/ATen.h>

#include <limits>

#include "core/check.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"
#include "tests/train/loss_samples.h"

using namespace aifs;
using namespace aifs::train;
using namespace aifs::test;

namespace {

// Every node hears from its two neighbours on a ring of four, with weight a half each.
LossGraphEdges ring() {
  LossGraphEdges edges;
  for (int64_t i = 0; i < 4; ++i) {
    for (const int64_t j : {i + 1, i + 3}) {
      edges.source.push_back(j % 4);
      edges.target.push_back(i);
    }
  }
  edges.weight.assign(8, 0.5f);
  return edges;
}

GraphLossOptions ring_options() {
  return {loss_graph(ring(), 4), false};
}

GraphEdgeLoss edge_loss(const EdgeScoreOptions& score,
                        ElementaryOptions options = example_options(), bool row_normalise = false) {
  GraphLossOptions graph = ring_options();
  graph.row_normalise = row_normalise;
  return GraphEdgeLoss(score, graph, std::move(options));
}

constexpr EdgeScoreOptions kEdgeEnergy{.kind = EdgeScore::kEnergy};
constexpr EdgeScoreOptions kEdgeCrps{.kind = EdgeScore::kCrps, .alpha = 1.0};
constexpr EdgeScoreOptions kVariogram{.kind = EdgeScore::kVariogram, .fair = true, .p = 1.0};
constexpr EdgeScoreOptions kRootVariogram{.kind = EdgeScore::kVariogram, .fair = false, .p = 0.5};

}  // namespace

TEST_CASE("graph scores have the reference values", "[graph_loss]") {
  require_value(GraphEnergyLoss(true, ring_options(), example_options())(members(), target()),
                0.2965021252);
  require_value(edge_loss(kEdgeEnergy)(members(), target()), 0.1959101329);
  require_value(edge_loss(kEdgeCrps)(members(), target()), 0.1659195522);
  require_value(edge_loss(kVariogram)(members(), target()), 0.0745919783);
  require_value(edge_loss(kRootVariogram)(members(), target()), 0.0470600416);
}

TEST_CASE("gradients of graph scores are right", "[graph_loss]") {
  const auto error = [](const Loss& loss, const at::Tensor& offset) {
    const at::Tensor y = target() + offset;
    return gradient_error([&](const auto& x) { return loss(x[0], y); }, {members() + offset});
  };
  const at::Tensor zero = at::zeros({}, at::kDouble);
  REQUIRE(error(GraphEnergyLoss(true, ring_options(), example_options()), zero) <=
          gradient_tolerance());
  REQUIRE(error(GraphEnergyLoss(false, {}, example_options()), zero) <= gradient_tolerance());
  for (const EdgeScoreOptions& score : {kEdgeEnergy, kEdgeCrps, kVariogram}) {
    REQUIRE(error(edge_loss(score), zero) <= gradient_tolerance());
  }
  // Nodes apart in value keep differences away from 0, where their root is too steep.
  const at::Tensor apart = at::tensor({0.0, 4.0, 10.0, 5.0}, at::kDouble).reshape({1, 1, 1, 4, 1});
  REQUIRE(error(edge_loss(kRootVariogram), apart) <= gradient_tolerance());
}

TEST_CASE("graphs are made of weights, source weights and rows that sum to one", "[graph_loss]") {
  LossGraphEdges edges{
      .source = {0, 1, 1}, .target = {0, 0, 1}, .weight = {1, 3, 2}, .source_weight = {2, 1}};
  const auto row_0 = [&](const SparseRowsPtr& matrix) {
    return matrix->apply(at::tensor({1.0, 10.0}, at::kDouble).unsqueeze(1))[0][0].item<double>();
  };
  REQUIRE(row_0(loss_graph(edges, 2)) == 2.0 + 30.0);
  edges.self_edges = false;
  REQUIRE(row_0(loss_graph(edges, 2)) == 30.0);
  edges.self_edges = true;
  edges.row_normalise = true;
  REQUIRE(std::abs(row_0(loss_graph(edges, 2)) - 32.0 / 5.0) <= 1e-6);
  edges.weight[0] = -1;
  REQUIRE_THROWS_AS(loss_graph(edges, 2), Error);
}

TEST_CASE("nodes with NaN are no neighbours, and the others take their weight", "[graph_loss]") {
  ElementaryOptions options = example_options();
  options.ignore_nans = true;
  at::Tensor holed = members().clone();
  holed.select(3, 2).select(2, 1).fill_(std::numeric_limits<double>::quiet_NaN());
  // Without node 2, nodes 1 and 3 hear node 0 only, with weight 1.
  const LossGraphEdges left{
      .source = {1, 3, 0, 0}, .target = {0, 0, 1, 3}, .weight = {0.5f, 0.5f, 1.0f, 1.0f}};
  ElementaryOptions without_node_2 = example_options();
  without_node_2.scalers[1] =
      over_axis("node", at::tensor({0.1, 0.2, 0.0, 0.4}, at::kDouble), kGrid);
  for (const EdgeScoreOptions& score : {kEdgeEnergy, kEdgeCrps, kVariogram}) {
    const LossResult result =
        whole(edge_loss(score, options, /*row_normalise=*/true), holed, target());
    const GraphEdgeLoss expected(score, {loss_graph(left, 4), false}, without_node_2);
    REQUIRE(max_difference(result.value, expected(members(), target())) <= 1e-14);
    REQUIRE(at::isfinite(result.gradient).all().item<bool>());
  }
  const GraphEnergyLoss energy(true, {loss_graph(ring(), 4), true}, options);
  const GraphEnergyLoss expected(true, {loss_graph(left, 4), false}, without_node_2);
  REQUIRE(max_difference(energy(holed, target()), expected(members(), target())) <= 1e-14);
}

TEST_CASE("ranks compute graph scores from all nodes", "[graph_loss]") {
  const auto check = [](const Loss& loss) {
    const LossResult one = whole(loss, members(), target());
    const LossResult two = by_ranks(loss, members(), target(), {0, 3, 4});
    REQUIRE(max_difference(one.value, two.value) <= 1e-15);
    REQUIRE(max_difference(one.gradient, two.gradient) <= 1e-15);
  };
  check(GraphEnergyLoss(true, ring_options(), example_options()));
  check(edge_loss(kEdgeCrps));
}
