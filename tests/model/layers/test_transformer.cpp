// SPDX-License-Identifier: Apache-2.0
#include "model/layers/transformer.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::max_difference;
using test::random_tensor;

namespace {

constexpr double kRounding = 1e-12;
constexpr int64_t kChannels = 6, kHeads = 2;

void shake(ParameterSet& parameters) {
  uint64_t seed = 70;
  for (const Parameter& p : parameters.entries())
    p.tensor.detach().add_(random_tensor(p.tensor.sizes(), ++seed), 0.3);
}

TransformerOptions small_options() {
  return {.channels = kChannels, .heads = kHeads, .hidden = 8};
}

// Attention without options: queries of `t`, keys and values of `s`, one copy.
struct ByHand {
  const ParameterSet& parameters;
  at::Tensor get(const std::string& name) const { return parameters.at(name).tensor; }
  at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    return at::linear(x, get(name + ".weight"), get(name + ".bias"));
  }
  at::Tensor norm(const at::Tensor& x, const std::string& name) const {
    return at::layer_norm(x, {x.size(-1)}, get(name + ".weight"), get(name + ".bias"));
  }
  at::Tensor mlp(const at::Tensor& x, const std::string& name) const {
    return linear(at::gelu(linear(x, name + ".mlp.0")), name + ".mlp.2");
  }
  at::Tensor attention(const at::Tensor& t, const at::Tensor& s, const std::string& name) const {
    const auto heads = [&](const at::Tensor& x, const char* map) {
      return at::linear(x, get(name + map)).view({x.size(0), kHeads, -1}).transpose(0, 1);
    };
    const at::Tensor q = heads(t, ".lin_q.weight"), k = heads(s, ".lin_k.weight");
    const at::Tensor weights = at::softmax(
        at::bmm(q, k.transpose(1, 2)) / std::sqrt(static_cast<double>(kChannels / kHeads)), -1);
    const at::Tensor out = at::bmm(weights, heads(s, ".lin_v.weight")).transpose(0, 1);
    return linear(out.reshape({t.size(0), -1}), name + ".projection");
  }
};

}  // namespace

TEST_CASE("a processor layer is its formulas", "[transformer]") {
  ParameterSet parameters(at::kDouble, 1);
  const TransformerProcessor processor(ParameterScope(parameters), small_options(), 2);
  shake(parameters);
  const ByHand hand{parameters};
  const at::Tensor x = random_tensor({7, kChannels}, 1);
  at::Tensor y = x;
  for (const std::string layer : {"proc.0.", "proc.1."}) {
    const at::Tensor u = hand.norm(y, layer + "layer_norm_attention");
    y = y + hand.attention(u, u, layer + "attention");
    y = y + hand.mlp(hand.norm(y, layer + "layer_norm_mlp"), layer + "mlp");
  }
  REQUIRE(max_difference(processor.forward(x, 1), y) <= kRounding);
}

TEST_CASE("a mapper's residual starts from the normalised target", "[transformer]") {
  ParameterSet parameters(at::kDouble, 1);
  const CrossAttentionBlock block(ParameterScope(parameters), small_options());
  shake(parameters);
  const ByHand hand{parameters};
  const at::Tensor targets = random_tensor({4, kChannels}, 1);
  const at::Tensor sources = random_tensor({9, kChannels}, 2);
  const at::Tensor t = hand.norm(targets, "layer_norm_attention_dst");
  at::Tensor y = t + hand.attention(t, hand.norm(sources, "layer_norm_attention_src"), "attention");
  y = y + hand.mlp(hand.norm(y, "layer_norm_mpl"), "mlp");
  REQUIRE(max_difference(block.forward(targets, sources, 1), y) <= kRounding);
}

TEST_CASE("the two norms that nothing uses are marked as such", "[transformer]") {
  ParameterSet parameters(at::kDouble, 1);
  const CrossAttentionBlock block(ParameterScope(parameters) / "proc", small_options());
  for (const Parameter& p : parameters.entries()) {
    INFO(p.name);
    const bool dead = p.name.find("layer_norm_attention.") != std::string::npos ||
                      p.name.find("layer_norm_mlp.") != std::string::npos;
    REQUIRE(p.unused == dead);
  }
}

TEST_CASE("a window of -1 counts the keys of a mapper with torch's attention only",
          "[transformer]") {
  const at::Tensor targets = random_tensor({8, kChannels}, 1);
  const at::Tensor sources = random_tensor({3, kChannels}, 2);
  const auto run = [&](std::optional<int64_t> window, AttentionBackend backend, bool is_mapper) {
    TransformerOptions options = small_options();
    options.window = window;
    options.backend = backend;
    ParameterSet parameters(at::kDouble, 1);
    const HeadAttention attention(ParameterScope(parameters), options, is_mapper);
    shake(parameters);
    return attention.forward(targets, sources, 1);
  };
  using B = AttentionBackend;
  REQUIRE(max_difference(run(-1, B::kSdpa, true), run(3, B::kSdpa, true)) == 0.0);
  REQUIRE(max_difference(run(-1, B::kSdpa, true), run({}, B::kSdpa, true)) > 1e-3);
  REQUIRE(max_difference(run(-1, B::kSdpa, false), run({}, B::kSdpa, false)) == 0.0);
  REQUIRE(max_difference(run(-1, B::kFlash, true), run({}, B::kFlash, true)) == 0.0);
}

TEST_CASE("encoder and decoder join two node sets, copy by copy", "[transformer]") {
  ParameterSet parameters(at::kDouble, 1);
  const ParameterScope root(parameters);
  TransformerOptions options = small_options();
  options.qk_norm = true;
  const TransformerEncoder encoder(root / "e", options, 5, 3);
  const TransformerDecoder decoder(root / "d", options, kChannels, 5, 2);
  shake(parameters);
  const at::Tensor x = random_tensor({2 * 8, 5}, 1), hidden = random_tensor({4, 3}, 2);
  const auto run = [&](const at::Tensor& data, int64_t copies) {
    const Encoded encoded = encoder.forward(data, hidden, copies);
    REQUIRE(encoded.latent.sizes() == at::IntArrayRef{copies * 4, kChannels});
    return decoder.forward(encoded.latent, encoded.data, copies);
  };
  const at::Tensor together = run(x, 2);
  for (int64_t b = 0; b < 2; ++b)
    REQUIRE(max_difference(together.narrow(0, 8 * b, 8), run(x.narrow(0, 8 * b, 8), 1)) <=
            kRounding);
}

TEST_CASE("recomputation changes neither result nor gradients", "[transformer]") {
  const auto run = [](RecomputePolicy policy) {
    ParameterSet parameters(at::kDouble, 1);
    const ParameterScope root(parameters);
    TransformerOptions options = small_options();
    options.recompute = policy;
    const TransformerEncoder encoder(root / "e", options, 5, 3);
    const TransformerProcessor processor(root / "p", options, 2);
    const TransformerDecoder decoder(root / "d", options, kChannels, 5, 2);
    shake(parameters);
    const Encoded encoded = encoder.forward(random_tensor({8, 5}, 1), random_tensor({4, 3}, 2), 1);
    const at::Tensor y = decoder.forward(processor.forward(encoded.latent, 1), encoded.data, 1);
    y.square().sum().backward();
    std::vector<at::Tensor> all{y};
    for (const Parameter& p : parameters.entries()) {
      if (!p.unused) all.push_back(p.tensor.grad());
    }
    return all;
  };
  const auto expected = run(RecomputePolicy::kNone);
  for (const auto policy :
       {RecomputePolicy::kMlp, RecomputePolicy::kBlock, RecomputePolicy::kFull}) {
    const auto ours = run(policy);
    for (size_t i = 0; i < ours.size(); ++i)
      REQUIRE(max_difference(ours[i], expected[i]) <= kRounding);
  }
}

TEST_CASE("the chain of transformer blocks has the gradients of finite differences",
          "[transformer]") {
  ParameterSet parameters(at::kDouble, 1);
  const ParameterScope root(parameters);
  TransformerOptions options = small_options();
  options.window = 2;
  const TransformerEncoder encoder(root / "e", options, 5, 3);
  const TransformerProcessor processor(root / "p", options, 1);
  shake(parameters);
  const auto function = [&](const std::vector<at::Tensor>& in) {
    return processor.forward(encoder.forward(in[0], in[1], 1).latent, 1);
  };
  REQUIRE(test::gradient_error(function, {random_tensor({8, 5}, 1), random_tensor({4, 3}, 2)}) <=
          test::gradient_tolerance());
}
