// SPDX-License-Identifier: Apache-2.0
// Passes that are recorded as CUDA graphs give the numbers of passes that are not.
#include "train/recorded_pass.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>

#include "app/run/device.h"
#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/gpu.h"
#include "tests/support/tensors.h"

using namespace aifs;

namespace {

// A weight, its gradient in a tensor that stays, and a loss of both.
struct Pass {
  at::Tensor weight =
      test::random_tensor({16, 16}, 1).to(at::kFloat).to(at::kCUDA).requires_grad_();
  at::Tensor gradient = at::zeros_like(weight);

  Pass() { weight.mutable_grad() = gradient; }
  at::Tensor loss(const at::Tensor& values) const {
    return at::gelu(at::matmul(values, weight)).square().mean();
  }
  static void add_gradients(const at::Tensor& loss) { (loss * 0.5).backward(); }
};

at::Tensor batch(uint64_t seed, int64_t rows) {
  return test::random_tensor({rows, 16}, seed).to(at::kFloat).to(at::kCUDA);
}

}  // namespace

TEST_CASE("a recorded pass has the loss and gradients of one that is not", "[gpu]") {
  app::choose_device(app::DeviceChoice::kCuda, 0);
  const Pass pass;
  const auto loss = [&](const at::Tensor& x) { return pass.loss(x); };
  Pass::add_gradients(pass.loss(batch(2, 8)));  // libraries start
  train::RecordedPass eight(batch(3, 8), loss, Pass::add_gradients);
  train::RecordedPass five(batch(3, 5), loss, Pass::add_gradients, &eight);
  for (const uint64_t seed : {4, 5, 6}) {
    for (auto& [rows, recorded] : {std::pair{8, &eight}, std::pair{5, &five}}) {
      INFO("seed " << seed << ", " << rows << " rows");
      const at::Tensor values = batch(seed, rows);
      pass.gradient.zero_();
      const at::Tensor expected = pass.loss(values);
      Pass::add_gradients(expected);
      const at::Tensor expected_gradient = pass.gradient.clone();
      pass.gradient.zero_();
      REQUIRE(recorded->loss_of(values).item<float>() == expected.item<float>());
      recorded->add_gradients();
      REQUIRE(at::equal(pass.gradient, expected_gradient));
      recorded->loss_of(values);
      recorded->add_gradients();
      REQUIRE(test::max_difference(pass.gradient, 2.0 * expected_gradient) < 1e-7);
    }
  }
}

TEST_CASE("what a recorded pass sends counts when it is launched", "[gpu]") {
  app::choose_device(app::DeviceChoice::kCuda, 0);
  const Pass pass;
  const auto alone = parallel::make_single_communicator();
  const auto count = std::make_shared<parallel::CommunicationCount>();
  parallel::CountingCommunicator group(*alone, count);
  const auto loss = [&](const at::Tensor& x) {
    const at::Tensor value = pass.loss(x);
    group.all_reduce(value.detach(), parallel::Reduction::kSum);
    return value;
  };
  const at::Tensor values = batch(2, 8);
  Pass::add_gradients(loss(values));
  REQUIRE(count->of(parallel::Operation::kAllReduce).calls == 1);
  train::RecordedPass recorded(values, loss, Pass::add_gradients, nullptr, group.count());
  REQUIRE(count->of(parallel::Operation::kAllReduce).calls == 1);
  recorded.loss_of(values);
  recorded.add_gradients();
  recorded.loss_of(values);
  REQUIRE(count->of(parallel::Operation::kAllReduce).calls == 3);
  REQUIRE(count->of(parallel::Operation::kAllReduce).bytes == 12);
}

TEST_CASE("the second pass of a kind is recorded; a pass that cannot be is left alone", "[gpu]") {
  app::choose_device(app::DeviceChoice::kCuda, 0);
  const Pass pass;
  const at::Tensor values = batch(2, 8);
  const auto loss = [&](const at::Tensor& x) { return pass.loss(x); };
  const auto waits = [&](const at::Tensor& x) {
    const at::Tensor value = pass.loss(x);
    return value * value.item<float>();  // the host cannot wait for what is only recorded
  };
  train::PassRecorder recorder;
  REQUIRE(recorder.pass({1, 8, 1}, values, loss, Pass::add_gradients) == nullptr);  // not yet
  const auto alone = parallel::make_single_communicator();
  recorder.start(train::DeviceGraphs::kOn, "", *alone);
  REQUIRE(recorder.pass({1, 8, 1}, values, loss, Pass::add_gradients) == nullptr);
  REQUIRE(recorder.pass({1, 8, 1}, values, loss, Pass::add_gradients) != nullptr);
  REQUIRE(recorder.pass({1, 8, 0}, values, waits, Pass::add_gradients) == nullptr);
  REQUIRE(recorder.pass({1, 8, 0}, values, waits, Pass::add_gradients) == nullptr);
  // From now on nothing is recorded, and work by itself is as before.
  REQUIRE(recorder.pass({1, 8, 1}, values, loss, Pass::add_gradients) == nullptr);
  pass.gradient.zero_();
  Pass::add_gradients(pass.loss(values));
  REQUIRE(pass.gradient.abs().max().item<float>() > 0.0F);
}
