// SPDX-License-Identifier: Apache-2.0
// Attention on a GPU against the CPU in fp64, from the same rounded inputs.
#include <ATen/ATen.h>

#include "model/kernels/graph_attention.h"
#include "model/kernels/graph_attention_cuda.h"
#include "model/kernels/sequence_attention.h"
#include "tests/support/catch.h"
#include "tests/support/gpu.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::random_tensor;

namespace {

using TensorList = std::vector<at::Tensor>;

const at::Device kDevice = at::Device(at::kCUDA, 0);

double rounding(at::ScalarType type) {
  return type == at::kFloat ? 2e-5 : type == at::kHalf ? 3e-3 : 2e-2;
}

// Results and gradients of `function`, of which the weighted sums of all results are taken.
template <class Function>
TensorList with_gradients(const TensorList& values, at::Device device, at::ScalarType type,
                          Function&& function) {
  TensorList in;
  for (const at::Tensor& value : values)
    in.push_back(value.detach().clone().to(device, type).set_requires_grad(true));
  TensorList out = function(in);
  at::Tensor loss = at::zeros({}, at::TensorOptions(device).dtype(at::kDouble));
  for (size_t i = 0; i < out.size(); ++i) {
    const at::Tensor weight =
        random_tensor(out[i].sizes(), 70 + i).to(type).to(device, at::kDouble);
    loss = loss + (out[i].to(at::kDouble) * weight).sum();
  }
  loss.backward();
  for (const at::Tensor& x : in)
    out.push_back(x.grad().defined() ? x.grad() : at::zeros_like(x));
  for (at::Tensor& x : out)
    x = x.detach().cpu().to(at::kDouble);
  return out;
}

template <class Function>
void require_equal_to_cpu(const TensorList& values, at::ScalarType type, Function&& function) {
  TensorList rounded;
  for (const at::Tensor& value : values)
    rounded.push_back(value.to(type).to(at::kDouble));
  const TensorList expected = with_gradients(rounded, at::kCPU, at::kDouble, function);
  const TensorList got = with_gradients(rounded, kDevice, type, function);
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    INFO(at::toString(type) << ", result " << i);
    if (got[i].numel() == 0) continue;
    const double size = 1.0 + expected[i].abs().max().item<double>();
    REQUIRE(test::max_difference(got[i], expected[i]) <= rounding(type) * size);
  }
}

struct Sizes {
  int64_t heads, width, edge_width, sources, targets, edges;
};

TensorList attention_inputs(const Sizes& s, double scale) {
  return {scale * random_tensor({s.targets, s.heads * s.width}, 1),
          scale * random_tensor({s.targets, s.heads * s.edge_width}, 2),
          random_tensor({s.sources, s.heads * s.width}, 3),
          random_tensor({s.sources, s.heads * s.width}, 4),
          random_tensor({s.edges, s.edge_width}, 5)};
}

TensorList attend(const TensorList& in, int64_t heads, const EdgeIndexPtr& edges) {
  const EdgeIndexPtr there = edges->to(in[0].device());
  const AttentionSums sums =
      graph_attention({in[0], in[1], in[2], in[3], in[4], 0.4}, heads, there);
  return {sums.nodes, sums.edges};
}

}  // namespace

// random_edge_index: targets without edges, with one, and one with a third of all.
TEST_CASE("graph attention, values and gradients, of all widths and types", "[attention_gpu]") {
  for (const Sizes& s :
       {Sizes{8, 8, 5, 30, 40, 200}, Sizes{4, 16, 12, 30, 40, 3000}, Sizes{1, 64, 1, 5, 7, 60},
        Sizes{16, 64, 12, 90, 70, 1500}, Sizes{3, 128, 9, 9, 6, 100}, Sizes{16, 128, 12, 9, 6, 100},
        Sizes{5, 24, 3, 9, 6, 100}, Sizes{2, 8, 40, 9, 6, 100}}) {
    INFO(s.heads << " heads of " << s.width << ", features " << s.edge_width);
    const auto edges = test::random_edge_index(s.sources, s.targets, s.edges, 5);
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      require_equal_to_cpu(attention_inputs(s, 0.2), type,
                           [&](const TensorList& in) { return attend(in, s.heads, edges); });
    }
  }
}

TEST_CASE("the kernels of graph attention know usual sizes, and which they do not",
          "[attention_gpu]") {
  const auto known = [](const Sizes& s, at::ScalarType type) {
    TensorList in;
    for (const at::Tensor& x : attention_inputs(s, 1.0))
      in.push_back(x.to(kDevice, type));
    return cuda_attention::supports({in[0], in[1], in[2], in[3], in[4]}, s.heads);
  };
  REQUIRE(known({16, 64, 12, 9, 6, 10}, at::kBFloat16));
  REQUIRE(known({16, 64, 12, 9, 6, 10}, at::kFloat));
  REQUIRE_FALSE(known({5, 24, 3, 9, 6, 10}, at::kBFloat16));
  REQUIRE_FALSE(known({16, 64, 12, 9, 6, 10}, at::kDouble));
}

TEST_CASE("graph attention without edges, and with large scores", "[attention_gpu]") {
  const at::Tensor none = at::empty({0}, at::kInt);
  const Sizes s{2, 16, 3, 3, 3, 0};
  const auto no_edges = EdgeIndex::create(none, none, 3, 3);
  require_equal_to_cpu(attention_inputs(s, 1.0), at::kBFloat16,
                       [&](const TensorList& in) { return attend(in, s.heads, no_edges); });
  const Sizes large{2, 8, 3, 9, 5, 40};
  const auto edges = test::random_edge_index(large.sources, large.targets, large.edges, 5);
  TensorList in;
  for (const at::Tensor& x : attention_inputs(large, 1e4))
    in.push_back(x.to(kDevice, at::kFloat).set_requires_grad(true));
  const TensorList out = attend(in, 2, edges);
  REQUIRE(out[0].isfinite().all().item<bool>());
  out[0].sum().backward();
  REQUIRE(in[0].grad().isfinite().all().item<bool>());
}

TEST_CASE("graph attention gives the same bits every time", "[attention_gpu]") {
  const Sizes s{16, 64, 12, 90, 70, 1500};
  const auto edges = test::random_edge_index(s.sources, s.targets, s.edges, 5);
  const auto once = [&] {
    return with_gradients(attention_inputs(s, 0.2), kDevice, at::kBFloat16,
                          [&](const TensorList& in) { return attend(in, s.heads, edges); });
  };
  const TensorList first = once(), second = once();
  for (size_t i = 0; i < first.size(); ++i)
    REQUIRE(at::equal(first[i], second[i]));
}

TEST_CASE("attention in a window of a sequence", "[attention_gpu]") {
  const auto rows = [](int64_t length) -> TensorList {
    return {random_tensor({2 * length, 64}, 1), random_tensor({2 * length, 64}, 2),
            random_tensor({2 * length, 64}, 3)};
  };
  // The last three are cut into parts in the backward pass.
  for (const auto& [length, window] : {std::pair<int64_t, int64_t>{300, 0},
                                       {300, 5},
                                       {300, 64},
                                       {300, 400},
                                       {384, 128},
                                       {1500, 7},
                                       {1500, 300}}) {
    INFO(length << " rows, window " << window);
    const SequenceAttentionOptions options{.heads = 4, .window = window};
    const auto attend_in_window = [&](const TensorList& x) -> TensorList {
      return {sequence_attention(x[0], x[1], x[2], 2, options)};
    };
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      require_equal_to_cpu(rows(length), type, attend_in_window);
      if (type == at::kFloat) continue;
      const TensorList first = with_gradients(rows(length), kDevice, type, attend_in_window);
      for (int turn = 0; turn < 3; ++turn) {
        const TensorList again = with_gradients(rows(length), kDevice, type, attend_in_window);
        for (size_t i = 0; i < first.size(); ++i)
          REQUIRE(at::equal(again[i], first[i]));
      }
    }
  }
  REQUIRE_FALSE(at::globalContext().deterministicAlgorithms());
}
