// SPDX-License-Identifier: Apache-2.0
// The optimiser on a GPU against the one on the CPU, which has the reference values.
#include <ATen/ATen.h>

#include <limits>

#include "tests/support/catch.h"
#include "tests/support/gpu.h"
#include "tests/support/tensors.h"
#include "train/optim/optimizer.h"

using namespace aifs;
using namespace aifs::train;

namespace {

struct Run {
  model::ParameterSet set;
  std::unique_ptr<AdamW> optimizer;

  Run(const at::Device& device, at::ScalarType dtype) : set(dtype, 1) {
    for (const int64_t size : {5, 1000, 64, 1, 70001})
      set.add("p" + std::to_string(size), {size}, model::Init::uniform(1.0));
    set.flatten(device);
    optimizer = std::make_unique<AdamW>(
        set, AdamWOptions{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1});
    optimizer->exclude({"p64"});
  }
  void steps(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const auto seed = static_cast<uint64_t>(i + 1);
      set.flat_gradients().copy_(test::random_tensor({set.flat_gradients().numel()}, seed));
      optimizer->step(1e-2, 1.5);
    }
  }
};

}  // namespace

TEST_CASE("a gradient that is no number makes its parameter none, on a GPU too", "[optimizer]") {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  const auto after_step = [&](const at::Device& device) {
    Run run(device, at::kFloat);
    run.set.flat_gradients().fill_(0.5);
    for (const int64_t i : {int64_t{3}, int64_t{700}, run.set.flat_size() - 1})
      run.set.flat_gradients().select(0, i).fill_(nan);
    run.optimizer->step(1e-2, 1.5);
    return at::stack({run.set.flat_values().cpu(), run.optimizer->moment1().cpu(),
                      run.optimizer->moment2().cpu()})
        .isnan();
  };
  const at::Tensor expected = after_step(at::kCPU);
  REQUIRE(expected.select(0, 0).sum().item<int64_t>() == 3);
  REQUIRE(at::equal(after_step(at::Device(at::kCUDA, 0)), expected));
}

TEST_CASE("a GPU takes the same AdamW steps", "[optimizer]") {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    Run expected(at::kCPU, at::kDouble), got(at::Device(at::kCUDA, 0), dtype);
    expected.steps(20);
    got.steps(20);
    const double limit = dtype == at::kDouble ? 1e-12 : 2e-6;
    REQUIRE(test::max_difference(got.set.flat_values().cpu(), expected.set.flat_values()) <= limit);
    REQUIRE(test::max_difference(got.set.flat_gradients().cpu(), expected.set.flat_gradients()) <=
            limit);
    REQUIRE(test::max_difference(got.optimizer->moment1().cpu(), expected.optimizer->moment1()) <=
            limit);
    REQUIRE(test::max_difference(got.optimizer->moment2().cpu(), expected.optimizer->moment2()) <=
            limit);
  }
}
