// SPDX-License-Identifier: Apache-2.0
// Built twice, the second time with AIFS_GPU_TEST for a GPU.
#include "model/kernels/window_attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "model/kernels/sequence_attention.h"
#include "tests/support/catch.h"
#include "tests/support/tensors.h"
#include "tests/support/test_device.h"

using namespace aifs;
using namespace aifs::model;
using test::kDevice;
using test::random_tensor;

namespace {

constexpr int64_t kHeadWidth = 64;

struct WindowCase {
  int64_t batches, rows, heads, window;
  bool apart = false;  // rows of queries, keys and values lie side by side
  double scale = 1.0;  // of queries
};

// Rounded queries, keys, values, and the gradient of the result, (B, N, H, 64) f64.
std::vector<at::Tensor> inputs_of(const WindowCase& s) {
  std::vector<at::Tensor> inputs;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const at::Tensor x = random_tensor({s.batches, s.rows, s.heads, kHeadWidth}, seed);
    inputs.push_back((seed == 0 ? s.scale * x : x).to(at::kBFloat16).to(at::kDouble));
  }
  return inputs;
}

at::Tensor plain_attention(const std::vector<at::Tensor>& in, const WindowCase& s) {
  const auto rows = [&](const at::Tensor& x) { return x.reshape({s.batches * s.rows, -1}); };
  return sequence_attention(rows(in[0]), rows(in[1]), rows(in[2]), s.batches,
                            {.heads = s.heads, .window = s.window})
      .view({s.batches, s.rows, s.heads, kHeadWidth});
}

// The result and three gradients, of what `attend` makes of queries, keys and values.
template <class Attend>
std::vector<at::Tensor> values_and_gradients(std::vector<at::Tensor> in, const at::Tensor& d_out,
                                             Attend&& attend) {
  for (at::Tensor& x : in)
    x.set_requires_grad(true);
  const at::Tensor out = attend(in);
  out.backward(d_out);
  return {out.detach(), in[0].grad(), in[1].grad(), in[2].grad()};
}

std::vector<at::Tensor> by_kernel(const WindowCase& s) {
  std::vector<at::Tensor> in = inputs_of(s);
  for (at::Tensor& x : in)
    x = x.to(kDevice, at::kBFloat16);
  const at::Tensor d_out = in[3];
  in.pop_back();
  if (s.apart) {
    const at::Tensor joined = at::stack(in, 2);  // (B, N, 3, H, 64)
    for (int64_t i = 0; i < 3; ++i)
      in[i] = joined.select(2, i);
  }
  return values_and_gradients(in, d_out, [&](const std::vector<at::Tensor>& x) {
    return window_attention(x[0], x[1], x[2], s.window);
  });
}

}  // namespace

TEST_CASE("the kernel of attention in a window is for some tensors alone", "[window_attention]") {
  const auto rows = [](int64_t num, int64_t width, at::ScalarType type) {
    return at::zeros({1, num, 2, width}, at::TensorOptions(kDevice).dtype(type));
  };
  const at::Tensor x = rows(10, kHeadWidth, at::kBFloat16);
  REQUIRE_FALSE(window_attention_fits(x, rows(11, kHeadWidth, at::kBFloat16), x));
  for (const at::Tensor& other : {rows(10, 32, at::kBFloat16), rows(10, kHeadWidth, at::kFloat),
                                  rows(0, kHeadWidth, at::kBFloat16), x.cpu()}) {
    REQUIRE_FALSE(window_attention_fits(other, other, other));
    REQUIRE_THROWS_AS(window_attention(other, other, other, 3), Error);
  }
}

TEST_CASE("attention in a window by the kernel, values and gradients", "[window_attention]") {
  const at::Tensor like =
      at::zeros({1, 1, 1, kHeadWidth}, at::TensorOptions(kDevice).dtype(at::kBFloat16));
  if (!window_attention_fits(like, like, like)) return;  // a CPU, or a card of another kind
  // One row; tiles that are cut; windows of nothing, of no multiple of anything, of all; a batch;
  // large scores.
  for (const WindowCase& s :
       {WindowCase{1, 1, 1, 3}, WindowCase{2, 50, 3, 7}, WindowCase{1, 130, 2, 0},
        WindowCase{3, 300, 2, 1000, true}, WindowCase{2, 777, 2, 101, true},
        WindowCase{1, 1500, 1, 512}, WindowCase{1, 700, 2, 150, false, 20.0}}) {
    INFO(s.batches << " of " << s.rows << " rows, window " << s.window);
    std::vector<at::Tensor> in = inputs_of(s);
    const at::Tensor d_out = in[3];
    in.pop_back();
    const auto expected = values_and_gradients(
        in, d_out, [&](const std::vector<at::Tensor>& x) { return plain_attention(x, s); });
    const auto got = by_kernel(s), again = by_kernel(s);
    for (size_t i = 0; i < got.size(); ++i) {
      INFO("result " << i);
      REQUIRE(at::equal(got[i], again[i]));
      const at::Tensor error = got[i].to(at::kCPU, at::kDouble) - expected[i];
      // Gradients of a row that sees itself alone are zero.
      const double norm = expected[i].norm().item<double>();
      const double least = 0.01 * std::sqrt(static_cast<double>(expected[i].numel()));
      REQUIRE(error.norm().item<double>() <= 0.01 * std::max(norm, least));
      const double size = 1.0 + expected[i].abs().max().item<double>();
      REQUIRE(error.abs().max().item<double>() <= 0.02 * size);
    }
  }
}
