// SPDX-License-Identifier: Apache-2.0
// Losses by the kernel of a GPU against LibTorch's operators on the CPU in fp64.
#include "train/loss/squared_errors.h"

#include <ATen/ATen.h>

#include "tests/support/catch.h"
#include "tests/support/gpu.h"
#include "tests/support/tensors.h"
#include "train/loss/mse.h"

using namespace aifs;
using namespace aifs::train;
using test::random_tensor;

namespace {

const at::Device kDevice = at::Device(at::kCUDA, 0);

// A loss and the gradient of its prediction.
struct Result {
  at::Tensor value, gradient;
};
Result run(const at::Device& device, at::ScalarType type, at::IntArrayRef sizes, bool scaled,
           const PointwiseError& error, OverVariables reduction) {
  const auto tensor = [&](at::IntArrayRef shape, uint64_t seed) {
    return random_tensor(shape, seed).to(device, type);
  };
  PointwiseLoss loss;
  loss.error = error;
  if (scaled) {
    loss.scalers = {over_axis("variable", tensor({sizes[4]}, 1).abs(), kVariable),
                    over_axis("nodes", tensor({sizes[3]}, 2).abs(), kGrid),
                    over_axis("time", tensor({sizes[1]}, 3).abs(), kTime)};
    Scaler both = loss.scalers[0];
    both.factor = tensor({1, 1, 1, sizes[3], sizes[4]}, 4).abs();
    loss.scalers.push_back(both);
  }
  const at::Tensor prediction = tensor(sizes, 5).set_requires_grad(true), target = tensor(sizes, 6);
  std::vector<at::Tensor> factors;
  for (const Scaler& scaler : loss.scalers)
    factors.push_back(scaler.factor);
  REQUIRE(squared_errors_fit(prediction, target, factors) == device.is_cuda());
  const at::Tensor value = loss(prediction, target, reduction);
  value.backward();
  return {value.detach().cpu(), prediction.grad().cpu().to(at::kDouble)};
}

}  // namespace

TEST_CASE("squared errors on a GPU are those of LibTorch's operators", "[squared_errors]") {
  for (const auto& sizes : std::vector<std::vector<int64_t>>{{1, 1, 1, 37, 89}, {2, 3, 2, 11, 5}}) {
    for (const bool scaled : {false, true}) {
      for (const PointwiseError& error : {mse_error(), rmse_error()}) {
        for (const OverVariables reduction : {OverVariables::kMean, OverVariables::kSum}) {
          const Result expected = run(at::kCPU, at::kDouble, sizes, scaled, error, reduction);
          const Result got = run(kDevice, at::kFloat, sizes, scaled, error, reduction);
          REQUIRE(test::max_difference(got.value, expected.value) <=
                  2e-6 * expected.value.item<double>());
          REQUIRE(test::max_difference(got.gradient, expected.gradient) <=
                  2e-6 * expected.gradient.abs().max().item<double>());
        }
      }
    }
  }
}

TEST_CASE("what the kernel cannot do is left to LibTorch's operators", "[squared_errors]") {
  const at::Tensor x = at::ones({2, 1, 3, 4, 5}, kDevice);
  REQUIRE(squared_errors_fit(x, x, {}));
  REQUIRE_FALSE(squared_errors_fit(x.to(at::kDouble), x.to(at::kDouble), {}));
  REQUIRE_FALSE(squared_errors_fit(x.transpose(3, 4), x.transpose(3, 4), {}));
  REQUIRE_FALSE(squared_errors_fit(x, x.narrow(2, 0, 1), {}));
  REQUIRE_FALSE(squared_errors_fit(x, x, {at::ones({2, 1, 1, 4, 1}, kDevice)}));
  REQUIRE_FALSE(
      squared_errors_fit(x, x, std::vector<at::Tensor>(5, at::ones({1, 1, 1, 1, 1}, kDevice))));
}
