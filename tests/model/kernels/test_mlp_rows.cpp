// SPDX-License-Identifier: Apache-2.0
// What is expected comes from LibTorch's operators and their gradients in fp64.
#include "model/kernels/mlp_rows.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::random_tensor;

namespace {

struct Shape {
  int64_t rows = 0;
  std::vector<int64_t> in;
  std::vector<int64_t> widths;  // of the linears' results
  bool norm = true, residual = false, edges = false;
};

constexpr int64_t kSources = 70, kTargets = 90;

// Operands and gradients of a call in one type.
struct Case {
  RowMlp mlp;
  std::shared_ptr<const EdgeIndex> edges;
  at::Tensor d_rows, d_sums;
  std::vector<at::Tensor> all;  // tensors that have gradients

  Case(const Shape& shape, at::ScalarType type) {
    uint64_t seed = 0;
    const auto make = [&](at::IntArrayRef sizes) {
      all.push_back(random_tensor(sizes, ++seed).to(type));
      return all.back();
    };
    for (const int64_t width : shape.in)
      mlp.inputs.push_back(make({shape.rows, width}));
    // The parts lie side by side in one weight.
    int64_t total = 0;
    for (const int64_t width : shape.in)
      total += width;
    const at::Tensor weight = make({shape.widths[0], total});
    mlp.first = weight.split_with_sizes(shape.in, 1);
    mlp.biases.push_back(make({shape.widths[0]}));
    for (size_t i = 1; i < shape.widths.size(); ++i) {
      mlp.weights.push_back(make({shape.widths[i], shape.widths[i - 1]}));
      mlp.biases.push_back(make({shape.widths[i]}));
    }
    const int64_t out = shape.widths.back();
    if (shape.norm) mlp.norm = NormParameters{make({out}), make({out}), 1e-5};
    mlp.residual = shape.residual;
    d_rows = random_tensor({shape.rows, out}, ++seed).to(type);
    if (shape.edges) {
      edges = test::random_edge_index(kSources, kTargets, shape.rows, 5);
      mlp.edges = edges.get();
      mlp.at_target = make({kTargets, shape.widths[0]});
      mlp.at_source = make({kSources, shape.widths[0]});
      d_sums = random_tensor({kTargets, out}, ++seed).to(type);
    }
  }
};

// rows, sums, then the gradients of `all` (those of nodes as far as the call gives them).
using Results = std::vector<at::Tensor>;

Results run(const Shape& shape, at::ScalarType type, bool keep) {
  Case c(shape, type);
  const RowMlpResult result = mlp_rows(c.mlp, {.rows = true, .pre = keep});
  REQUIRE(result.pre.empty() == !keep);
  Results results{result.rows};
  if (shape.edges) results.push_back(result.sums);
  std::vector<at::Tensor> sums;
  for (const at::Tensor& x : c.all)
    sums.push_back(at::zeros_like(x));
  const size_t num_inputs = shape.in.size();
  auto next = sums.begin() + static_cast<std::ptrdiff_t>(num_inputs);
  RowMlpSums to;
  to.first = (*next++).split_with_sizes(shape.in, 1);
  to.biases = {*next++};
  for (size_t i = 1; i < shape.widths.size(); ++i) {
    to.weights.push_back(*next++);
    to.biases.push_back(*next++);
  }
  if (shape.norm) {
    to.norm_weight = *next++;
    to.norm_bias = *next++;
  }
  const RowMlpGradients back = mlp_rows_backward(c.mlp, result, c.d_rows, c.d_sums, to, true);
  for (size_t i = 0; i < num_inputs; ++i)
    sums[i] = back.inputs[i];
  if (shape.edges) {
    *next++ = back.at_target;
    *next++ = sum_edges(back.at_edges, *c.edges, /*at_targets=*/false);
  }
  results.insert(results.end(), sums.begin(), sums.end());
  return results;
}

Results expected_results(const Shape& shape, at::ScalarType rounded_to) {
  Case c(shape, rounded_to);
  for (at::Tensor& x : c.all)
    x = x.to(at::kDouble).requires_grad_();
  auto next = c.all.begin();
  at::Tensor h;
  const at::Tensor input = c.all[0];
  std::vector<at::Tensor> inputs;
  for (size_t i = 0; i < shape.in.size(); ++i)
    inputs.push_back(*next++);
  at::Tensor weight = *next++;
  h = at::linear(at::cat(inputs, 1), weight, *next++);
  const auto linears_begin = next;
  if (shape.edges) {
    h = h + c.all[c.all.size() - 2].index_select(0, c.edges->target) +
        c.all.back().index_select(0, c.edges->source);
  }
  next = linears_begin;
  for (size_t i = 1; i < shape.widths.size(); ++i) {
    weight = *next++;
    h = at::linear(at::gelu(h), weight, *next++);
  }
  if (shape.norm) {
    weight = *next++;
    h = at::layer_norm(h, {h.size(1)}, weight, *next++, 1e-5);
  }
  if (shape.residual) h = h + input;
  Results results{h};
  at::Tensor loss = (h * c.d_rows.to(at::kDouble)).sum();
  if (shape.edges) {
    results.push_back(
        at::zeros({kTargets, h.size(1)}, at::kDouble).index_add(0, c.edges->target, h));
    loss = loss + (results.back() * c.d_sums.to(at::kDouble)).sum();
  }
  loss.backward();
  for (const at::Tensor& x : c.all)
    results.push_back(x.grad());
  return results;
}

const std::vector<Shape> kShapes{
    {.rows = 1, .in = {3}, .widths = {5, 4}, .norm = false},
    {.rows = 47, .in = {11}, .widths = {24, 24, 22}, .norm = false},
    {.rows = 700, .in = {11}, .widths = {24, 40, 22}},
    {.rows = 700, .in = {24, 24}, .widths = {32, 32, 24}, .residual = true},
    {.rows = 129, .in = {9}, .widths = {8, 9}, .residual = true},
    {.rows = 1500, .in = {16}, .widths = {16, 16, 16}, .residual = true, .edges = true},
    {.rows = 333, .in = {7}, .widths = {9, 7}, .residual = true, .edges = true},
};

}  // namespace

TEST_CASE("an MLP in blocks is that of LibTorch's operators", "[mlp_rows]") {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    // Sums of some thousand terms, three products one after the other.
    const double tolerance = type == at::kDouble ? 1e-12 : 2e-5;
    for (const Shape& shape : kShapes) {
      const Results expected = expected_results(shape, type);
      for (const bool keep : {true, false}) {
        const Results got = run(shape, type, keep);
        REQUIRE(got.size() == expected.size());
        for (size_t i = 0; i < got.size(); ++i) {
          INFO(at::toString(type) << ", " << shape.rows << " rows, result " << i);
          const at::Tensor difference = got[i].to(at::kDouble) - expected[i];
          REQUIRE(difference.norm().item<double>() <=
                  tolerance * expected[i].norm().item<double>());
        }
      }
    }
  }
}

TEST_CASE("results of an MLP in blocks do not depend on threads", "[mlp_rows]") {
  const int before = at::get_num_threads();
  for (const Shape& shape : kShapes) {
    at::set_num_threads(1);
    const Results one = run(shape, at::kFloat, true);
    at::set_num_threads(3);
    const Results three = run(shape, at::kFloat, true);
    for (size_t i = 0; i < one.size(); ++i)
      REQUIRE(at::equal(one[i], three[i]));
  }
  at::set_num_threads(before);
}
