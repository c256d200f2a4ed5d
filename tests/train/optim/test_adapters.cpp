// SPDX-License-Identifier: Apache-2.0
#include "train/optim/adapters.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::train;
using test::random_tensor;

namespace {

constexpr int64_t kOut = 3, kIn = 5, kRank = 2;
const LoraOptions kOptions{.rank = kRank, .alpha = 6.0, .parameters = {"layer"}, .train_whole = {}};

// A linear with an adapter, another one without, and a norm.
struct Network {
  model::ParameterSet set{at::kDouble, 1};

  explicit Network(const LoraOptions& options = kOptions) {
    set.add("layer.weight", {kOut, kIn}, model::Init::uniform(1.0));
    set.add("layer.bias", {kOut}, model::Init::zeros());
    set.add("other.weight", {kOut, kOut}, model::Init::uniform(1.0));
    set.add("norm.weight", {kOut}, model::Init::ones());
    add_adapters(set, options);
    set.flatten(at::kCPU);
  }
  at::Tensor value(const std::string& name) const { return set.at(name).tensor.detach(); }
  at::Tensor gradient(const std::string& name) const { return set.gradient(set.at(name)); }
};

std::string path_of_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("an adapter begins with nothing added, and adds alpha / rank B A", "[adapters]") {
  const Network network;
  const at::Tensor before = network.value("layer.weight").clone();
  REQUIRE(network.value("layer.lora_a").sizes() == at::IntArrayRef({kRank, kIn}));
  REQUIRE(network.value("layer.lora_a").abs().max().item<double>() > 0.0);
  Adapters adapters(network.set, kOptions);
  adapters.start();
  adapters.merge();
  REQUIRE(at::equal(network.value("layer.weight"), before));
  network.value("layer.lora_b").copy_(random_tensor({kOut, kRank}, 3));
  for (int i = 0; i < 3; ++i)
    adapters.merge();  // as often as it likes
  const at::Tensor added =
      3.0 * at::matmul(network.value("layer.lora_b"), network.value("layer.lora_a"));
  REQUIRE(at::allclose(network.value("layer.weight"), before + added, 0.0, 1e-14));
  network.value("layer.lora_b").zero_();
  adapters.merge();
  REQUIRE(at::equal(network.value("layer.weight"), before));
}

TEST_CASE("gradients of adapters are those of differentiation through the sum", "[adapters]") {
  const Network network;
  Adapters adapters(network.set, kOptions);
  adapters.start();
  network.value("layer.lora_b").copy_(random_tensor({kOut, kRank}, 4));
  adapters.merge();
  const at::Tensor of_sum = random_tensor({kOut, kIn}, 5).to(at::kDouble);
  network.gradient("layer.weight").copy_(of_sum);
  const at::Tensor a = network.value("layer.lora_a").clone().set_requires_grad(true);
  const at::Tensor b = network.value("layer.lora_b").clone().set_requires_grad(true);
  const at::Tensor loss =
      (of_sum * (network.value("layer.lora_base") + 3.0 * at::matmul(b, a))).sum();
  const auto expected = torch::autograd::grad({loss}, {a, b});
  adapters.pull_gradients();
  REQUIRE(at::allclose(network.gradient("layer.lora_a"), expected[0], 1e-13, 1e-13));
  REQUIRE(at::allclose(network.gradient("layer.lora_b"), expected[1], 1e-13, 1e-13));
  REQUIRE(network.gradient("layer.weight").abs().max().item<double>() == 0.0);
}

TEST_CASE("beside adapters only what is named is trained", "[adapters]") {
  LoraOptions options = kOptions;
  const Network network;
  REQUIRE(not_updated(network.set, options) ==
          std::vector<std::string>{"layer.weight", "layer.bias", "other.weight", "norm.weight"});
  options.train_whole = {"norm", "layer.bias"};
  REQUIRE(not_updated(network.set, options) ==
          std::vector<std::string>{"layer.weight", "other.weight"});
  const Adapters adapters(network.set, options);
  REQUIRE(adapters.weights() == std::vector<std::string>{"layer.weight"});
  REQUIRE_FALSE(network.set.at("layer.lora_a").tensor.requires_grad());
  REQUIRE(network.set.at("layer.weight").tensor.requires_grad());
}

TEST_CASE("patterns of adapters that fit nothing or too much are named", "[adapters]") {
  LoraOptions options = kOptions;
  options.parameters = {"layer", "norm"};  // a norm has no matrix
  REQUIRE_THAT(path_of_error([&] { const Network network(options); }),
               ContainsSubstring("optimizer.lora.parameters.1"));
  const Network network;
  options.train_whole = {"norm", "nrm"};
  REQUIRE_THAT(path_of_error([&] { not_updated(network.set, options); }),
               ContainsSubstring("optimizer.lora.train_whole.1"));
  options.train_whole = {"layer"};
  REQUIRE_THAT(path_of_error([&] { not_updated(network.set, options); }),
               ContainsSubstring("'layer.weight', which has an adapter"));
  options = {};
  options.rank = 4;
  REQUIRE_THAT(path_of_error([&] { options.validate("optimizer.lora"); }),
               ContainsSubstring("optimizer.lora.parameters"));
  options = {};
  options.parameters = {"layer"};
  REQUIRE_THAT(path_of_error([&] { options.validate("optimizer.lora"); }),
               ContainsSubstring("optimizer.lora.rank"));
}

TEST_CASE("tensors of adapters are known by their names", "[adapters]") {
  for (const char* name : {"a.lora_a", "a.lora_b", "a.lora_base"}) {
    REQUIRE(is_adapter(name));
    REQUIRE(adapted_weight(name) == "a.weight");
  }
  REQUIRE_FALSE(is_adapter("a.weight"));
}
