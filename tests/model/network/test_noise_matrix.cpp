// SPDX-License-Identifier: Apache-2.0
#include "model/network/noise_matrix.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::max_difference;
using test::random_tensor;

namespace {

constexpr int64_t kData = 9, kHidden = 5;

graph::Graph small() {
  return test::random_graph({kData, kHidden, 20, 12, 18}, 3);
}

EnsembleOptions along_edges(const std::string& weights, bool normalised) {
  return {.members = 2,
          .noise = NoiseKind::kConditioning,
          .noise_nodes = "data",
          .noise_weights = weights,
          .noise_normalised = normalised};
}

// Edge by edge.
at::Tensor dense(const graph::Graph& graph, const std::string& weights) {
  const graph::EdgeSet& edges = graph.edges("data", "hidden");
  at::Tensor matrix = at::zeros({kHidden, kData}, at::kDouble);
  for (size_t e = 0; e < edges.source_index.size(); ++e) {
    const double weight = weights.empty() ? 1.0 : edges.attributes.at(weights).values[e];
    matrix[edges.target_index[e]][edges.source_index[e]] += weight;
  }
  return matrix;
}

at::Tensor brought(const EnsembleOptions& options, const at::Tensor& noise) {
  return sparse_product(noise_matrix(options, small(), "hidden").to(at::kDouble), noise);
}

}  // namespace

TEST_CASE("noise on the hidden nodes needs no matrix", "[noise_matrix]") {
  REQUIRE_FALSE(noise_matrix({}, small(), "hidden").defined());
}

TEST_CASE("noise comes along the edges with their weights", "[noise_matrix]") {
  const graph::Graph graph = small();
  const at::Tensor noise = random_tensor({kData, 3}, 2);
  const double rounding = 1e-14;
  for (const char* weights : {"", "edge_length"}) {
    INFO(weights);
    const at::Tensor whole = dense(graph, weights);
    REQUIRE(max_difference(brought(along_edges(weights, false), noise), at::matmul(whole, noise)) <
            rounding);
    const at::Tensor sums = whole.sum(1, /*keepdim=*/true);
    const at::Tensor means = whole / at::where(sums == 0.0, at::ones_like(sums), sums);
    // Weights are divided in f32, as Anemoi does.
    REQUIRE(max_difference(brought(along_edges(weights, true), noise), at::matmul(means, noise)) <
            1e-5);
  }
}

TEST_CASE("a matrix of a file takes the place of edges", "[noise_matrix]") {
  const EnsembleOptions options{.noise = NoiseKind::kConditioning,
                                .noise_matrix = test::fixture("npz/up_5x2.npz").string()};
  const SparseMatrix matrix = noise_matrix(options, small(), "hidden");
  REQUIRE(matrix.index->num_targets == kHidden);
  REQUIRE(matrix.index->num_sources == 2);
  EnsembleOptions other = options;
  other.noise_matrix = test::fixture("npz/down_2x5.npz").string();
  REQUIRE_THROWS_WITH(noise_matrix(other, small(), "hidden"),
                      ContainsSubstring("'model.ensemble.noise_matrix'"));
}

TEST_CASE("what the graph lacks is the fault of the option", "[noise_matrix]") {
  EnsembleOptions options = along_edges("edge_lenght", false);
  REQUIRE_THROWS_WITH(noise_matrix(options, small(), "hidden"),
                      ContainsSubstring("'model.ensemble.noise_weights'"));
  REQUIRE_THROWS_WITH(noise_matrix(along_edges("edge_dirs", false), small(), "hidden"),
                      ContainsSubstring("'model.ensemble.noise_weights'"));
  options.noise_nodes = "nowhere";
  REQUIRE_THROWS_WITH(noise_matrix(options, small(), "hidden"),
                      ContainsSubstring("'model.ensemble.noise_nodes'"));
}

TEST_CASE("options of noise that belongs nowhere are refused", "[noise_matrix]") {
  const auto fault = [](const EnsembleOptions& options) -> std::string {
    try {
      options.validate("e");
    } catch (const ConfigError& error) {
      return error.path();
    }
    return "none";
  };
  EnsembleOptions options = along_edges("edge_length", true);
  REQUIRE(fault(options) == "none");
  options.noise_matrix = "m.npz";
  REQUIRE(fault(options) == "e.noise_matrix");
  options.noise_nodes = "";
  REQUIRE(fault(options) == "e.noise_weights");
  options.noise_weights = "";
  REQUIRE(fault(options) == "none");
  options.noise_matrix = "";
  REQUIRE(fault(options) == "e.noise_normalised");
  REQUIRE(fault({.noise_nodes = "data"}) == "e.noise_nodes");
}
