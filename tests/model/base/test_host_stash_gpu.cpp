// SPDX-License-Identifier: Apache-2.0
// States that wait on the host come back with the same bits, in memory that is allocated once.
#include "model/base/host_stash.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include "model/layers/steps.h"
#include "tests/support/catch.h"
#include "tests/support/gpu.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;

namespace {

constexpr int64_t kRows = 1 << 14, kWidth = 256, kLayers = 12;
constexpr int64_t kStateBytes = kRows * kWidth * 4;  // 16 MiB
constexpr int64_t kPageBytes = 1 << 26;              // of the stash

at::Tensor on_gpu(at::IntArrayRef sizes, uint64_t seed) {
  return test::random_tensor(sizes, seed).to(at::kFloat).to(at::kCUDA);
}

// Gradients of some layers on a state of two tensors, one of them half of the memory it lies in.
struct Network {
  TensorList weights;
  std::vector<Step> steps;

  Network() {
    for (uint64_t i = 0; i < kLayers; ++i) {
      weights.push_back((on_gpu({kWidth, kWidth}, i) / 16.0).requires_grad_());
      steps.push_back([w = weights.back()](const TensorList& in) -> TensorList {
        const TensorList half = (at::mm(in[0], w).tanh() + in[0]).split(kRows / 2);
        return {at::cat({half[1], half[0]}), half[0] + in[1]};
      });
    }
  }

  TensorList gradients(const StepsOptions& options, HostStash& stash) {
    const at::Tensor x = on_gpu({kRows, kWidth}, 20).requires_grad_();
    const at::Tensor both = on_gpu({kRows, kWidth}, 21).requires_grad_();
    const TensorList out =
        run_steps(steps, options, {x, both.narrow(0, kRows / 2, kRows / 2)}, {}, &stash);
    stash.settle();
    (out[0].square().sum() + out[1].square().sum()).backward();
    TensorList result{x.grad(), both.grad()};
    for (at::Tensor& weight : weights) {
      result.push_back(weight.grad());
      weight.mutable_grad() = at::Tensor();
    }
    return result;
  }
};

double peak_mib() {
  return static_cast<double>(
             c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[0].peak) /
         (1 << 20);
}

}  // namespace

TEST_CASE("states on the host change no bit, and take their memory once", "[gpu]") {
  Network network;
  for (const StepsOptions& options : std::vector<StepsOptions>{{RecomputePolicy::kBlock, 1, 1},
                                                               {RecomputePolicy::kBlock, 1, 5},
                                                               {RecomputePolicy::kBlock, 1, 99},
                                                               {RecomputePolicy::kFull, 4, 3}}) {
    INFO(options.offload << " on the host");
    HostStash stash;
    const TensorList expected = network.gradients({options.policy, options.groups}, stash);
    REQUIRE(stash.host_bytes() == 0);
    int64_t first = 0;
    for (int step = 0; step < 3; ++step) {
      const TensorList got = network.gradients(options, stash);
      for (size_t i = 0; i < expected.size(); ++i)
        REQUIRE(at::equal(got[i], expected[i]));
      if (step == 0) first = stash.host_bytes();
      REQUIRE(stash.host_bytes() == first);
    }
    const int64_t groups = options.policy == RecomputePolicy::kFull ? 4 : kLayers;
    const int64_t most = std::min(options.offload, groups - 1) * 2 * kPageBytes;
    REQUIRE(first >= 2 * kPageBytes);
    REQUIRE(first <= most);
  }
}

TEST_CASE("states on the host are not on the card", "[gpu]") {
  Network network;
  HostStash stash;
  const auto peak_of = [&](int64_t offload) {
    network.gradients({RecomputePolicy::kBlock, 1, offload}, stash);
    c10::cuda::CUDACachingAllocator::resetPeakStats(0);
    network.gradients({RecomputePolicy::kBlock, 1, offload}, stash);
    return peak_mib();
  };
  const double all_here = peak_of(0), one_here = peak_of(kLayers - 1);
  constexpr double kState = 1.5 * kStateBytes / (1 << 20);
  REQUIRE(one_here <= all_here - (kLayers / 2) * kState);
}
