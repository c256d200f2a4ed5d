// SPDX-License-Identifier: Apache-2.0
// The AdamW vectors are from appendix A.3 of the specification of training.
#include "train/optim/optimizer.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "core/check.h"
#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::train;
using test::max_difference;
using test::random_tensor;

namespace {

at::Tensor row(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble);
}

// Flat parameters with these values.
struct Weights {
  model::ParameterSet set;
  explicit Weights(const std::map<std::string, at::Tensor>& values,
                   at::ScalarType dtype = at::kDouble)
      : set(dtype, 1) {
    for (const auto& [name, value] : values)
      set.add(name, value.sizes(), model::Init::zeros());
    set.flatten(at::kCPU);
    for (const auto& [name, value] : values)
      set.assign(name, value);
  }
  at::Tensor operator[](const std::string& name) const { return set.at(name).tensor.detach(); }
  void set_gradient(const std::string& name, const at::Tensor& gradient) {
    set.gradient(set.at(name)).copy_(gradient);
  }
};

}  // namespace

TEST_CASE("AdamW gives the reference values", "[optimizer]") {
  Weights w({{"p", row({0.5, -0.25})}});
  AdamW optimizer(w.set, {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.01});
  const std::vector<std::vector<double>> gradients{{0.1, -0.2}, {0.3, 0.05}, {-0.2, 0.1}};
  const std::vector<std::vector<double>> expected{
      {0.4899500010, -0.2399750005}, {0.4808140850, -0.2352033440}, {0.4782002263, -0.2346986149}};
  for (size_t step = 0; step < gradients.size(); ++step) {
    w.set_gradient("p", row(gradients[step]));
    optimizer.step(0.01);
    REQUIRE(max_difference(w["p"], row(expected[step])) <= 5.1e-11);
  }
  REQUIRE(optimizer.num_steps() == 3);
}

TEST_CASE("a step at rate zero moves the moments only", "[optimizer]") {
  Weights w({{"p", row({0.5, -0.25})}});
  AdamW optimizer(w.set, {});
  w.set_gradient("p", row({0.1, -0.2}));
  optimizer.step(0.0);
  REQUIRE(at::equal(w["p"], row({0.5, -0.25})));
  REQUIRE(max_difference(optimizer.moment1().narrow(0, 0, 2), row({0.01, -0.02})) <= 1e-17);
  REQUIRE(max_difference(optimizer.moment2().narrow(0, 0, 2), row({5e-4, 2e-3})) <= 1e-17);
}

TEST_CASE("a step can clip gradients by value on the way, and keeps NaN", "[optimizer]") {
  Weights w({{"p", row({0.5, -0.25, 1.0, 2.0})}}), before({{"p", row({0.5, -0.25, 1.0, 2.0})}});
  AdamW optimizer(w.set, {}), plain(before.set, {});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  w.set_gradient("p", row({7.0, -9.0, 0.25, nan}));
  before.set_gradient("p", row({2.0, -2.0, 0.25, nan}));
  optimizer.step(0.1, 2.0);
  plain.step(0.1);
  REQUIRE(at::equal(w["p"].narrow(0, 0, 3), before["p"].narrow(0, 0, 3)));
  REQUIRE(std::isnan(w["p"][3].item<double>()));
}

TEST_CASE("decay shrinks parameters without gradient, too", "[optimizer]") {
  Weights w({{"bias", row({2.0})}});
  AdamW optimizer(w.set, {.weight_decay = 0.1});
  optimizer.step(0.5);
  REQUIRE(w["bias"].item<double>() == Approx(2.0 * (1.0 - 0.5 * 0.1)).epsilon(1e-15));
}

TEST_CASE("excluded parameters are left alone entirely", "[optimizer]") {
  const std::map<std::string, at::Tensor> values{{"a", random_tensor({70}, 1)},
                                                 {"b", random_tensor({3, 2}, 2)},
                                                 {"c", random_tensor({64}, 3)},
                                                 {"d", random_tensor({5}, 4)}};
  Weights w(values), all(values);
  AdamW optimizer(w.set, {}), plain(all.set, {});
  optimizer.exclude({"c", "a"});
  for (uint64_t step = 0; step < 3; ++step) {
    for (const auto& [name, value] : values) {
      w.set_gradient(name, random_tensor(value.sizes(), 10 + step));
      all.set_gradient(name, random_tensor(value.sizes(), 10 + step));
    }
    optimizer.step(0.1);
    plain.step(0.1);
  }
  for (const char* excluded : {"a", "c"})
    REQUIRE(at::equal(w[excluded], values.at(excluded)));
  for (const char* updated : {"b", "d"}) {
    REQUIRE(at::equal(w[updated], all[updated]));
    REQUIRE_FALSE(at::equal(w[updated], values.at(updated)));
  }
  REQUIRE_THROWS_AS(optimizer.exclude({"no such tensor"}), Error);
}

TEST_CASE("padding of the flat buffer stays zero", "[optimizer]") {
  Weights w({{"p", row({1.0, 2.0})}});
  AdamW optimizer(w.set, {});
  w.set_gradient("p", row({1.0, 1.0}));
  optimizer.step(0.1);
  REQUIRE(w.set.flat_values().narrow(0, 2, 62).abs().max().item<double>() == 0.0);
}

TEST_CASE("clipping by value limits every element", "[optimizer]") {
  const at::Tensor g = row({-40, 3, 32.5, 0});
  REQUIRE(clip_gradients(g, ClipKind::kValue, 32.0) == 0.0);
  REQUIRE(at::equal(g, row({-32, 3, 32, 0})));
}

TEST_CASE("clipping by norm scales only what is too long", "[optimizer]") {
  const at::Tensor g = row({3, 4});
  REQUIRE(clip_gradients(g, ClipKind::kNorm, 10.0) == 5.0);
  REQUIRE(at::equal(g, row({3, 4})));
  REQUIRE(clip_gradients(g, ClipKind::kNorm, 1.0) == 5.0);
  // Anemoi's clipping (PyTorch's) divides by the norm plus 1e-6.
  REQUIRE(max_difference(g, row({3, 4}) / (5.0 + 1e-6)) <= 1e-15);
}

TEST_CASE("the norm of gradients counts slices of all ranks once, and whole tensors once",
          "[optimizer]") {
  const at::Tensor whole = row({1, -2}), sliced = row({3, 4, -5, 6});
  const double norm = at::cat({whole, sliced}).norm().item<double>();
  REQUIRE_NOTHROW(parallel::run_as_threads(6, [&](parallel::Communicator& all) {
    // Three slices, whose parts are shared out over two ranks each.
    const auto shards = all.split(all.rank() / 2), tensor_ranks = all.split(all.rank() % 2);
    const at::Tensor slice = model::TensorRanks(*tensor_ranks).slice(0, 4).of(sliced);
    const auto own = [&](const at::Tensor& tensor) {
      return tensor.tensor_split(2)[static_cast<size_t>(shards->rank())].clone();
    };
    const double got = clip_gradients({.whole = {own(whole)},
                                       .sliced = {own(slice)},
                                       .shards = shards.get(),
                                       .tensor_ranks = tensor_ranks.get()},
                                      ClipKind::kNorm, 1.0);
    AIFS_CHECK(std::abs(got - norm) <= 1e-14 * norm, "norm ", got, " instead of ", norm);
  }));
}

TEST_CASE("no clipping changes nothing", "[optimizer]") {
  const at::Tensor g = row({1e30, -1e30});
  REQUIRE(clip_gradients(g, ClipKind::kNone, 0.0) == 0.0);
  REQUIRE(at::equal(g, row({1e30, -1e30})));
}

TEST_CASE("the number of steps can be restored", "[optimizer]") {
  // Ten steps in one go, and five steps continued by another optimiser with the same state.
  const auto gradient = [](uint64_t step) { return random_tensor({4}, 30 + step); };
  const at::Tensor start = random_tensor({4}, 5);
  Weights whole({{"p", start}}), split({{"p", start}});
  AdamW one(whole.set, {}), first(split.set, {}), second(split.set, {});
  for (uint64_t step = 0; step < 10; ++step) {
    whole.set_gradient("p", gradient(step));
    one.step(0.01);
    split.set_gradient("p", gradient(step));
    if (step == 5) {
      second.set_num_steps(first.num_steps());
      second.moment1().copy_(first.moment1());
      second.moment2().copy_(first.moment2());
    }
    (step < 5 ? first : second).step(0.01);
  }
  REQUIRE(at::equal(whole["p"], split["p"]));
}

TEST_CASE("parameters must be flat", "[optimizer]") {
  model::ParameterSet set(at::kFloat, 1);
  set.add("p", {2}, model::Init::ones());
  REQUIRE_THROWS_AS(AdamW(set, {}), Error);
}

TEST_CASE("AdEMAMix gives the reference values", "[optimizer]") {
  Weights w({{"p", row({0.5, -0.25})}});
  const AdamWOptions options{.kind = OptimizerKind::kAdemamix,
                             .beta3 = 0.9999,
                             .alpha = 8.0,
                             .alpha_warmup = 10,
                             .beta3_warmup = 10};
  REQUIRE(std::abs(ademamix_alpha(options, 2) - 1.6) <= 1e-15);
  REQUIRE(std::abs(ademamix_beta3(options, 1) - 0.9990090103) <= 5.1e-11);
  REQUIRE(std::abs(ademamix_beta3(options, 3) - 0.9996674751) <= 5.1e-11);
  REQUIRE(ademamix_beta3(options, 10) == 0.9999);
  AdamW optimizer(w.set, options);
  const std::vector<std::vector<double>> gradients{{0.1, -0.2}, {0.3, 0.05}, {-0.2, 0.1}};
  const std::vector<std::vector<double>> expected{
      {0.4899420731, -0.2399670726}, {0.4807885607, -0.2351761877}, {0.4781546073, -0.2346457067}};
  for (size_t step = 0; step < gradients.size(); ++step) {
    w.set_gradient("p", row(gradients[step]));
    optimizer.step(0.01);
    REQUIRE(max_difference(w["p"], row(expected[step])) <= 5.1e-11);
  }
  REQUIRE(optimizer.states().size() == 3);
}

TEST_CASE("the learning rate grows with the samples of a step", "[optimizer]") {
  REQUIRE(scaled_lr(1e-3, LrScaling::kNone, 8, 2) == 1e-3);
  REQUIRE(scaled_lr(1e-3, LrScaling::kLinear, 8, 2) == 4e-3);
  REQUIRE(scaled_lr(1e-3, LrScaling::kSqrt, 8, 2) == 2e-3);
}
