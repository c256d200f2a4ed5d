// SPDX-License-Identifier: Apache-2.0
// The vectors are from appendix A.2 of the specification of training.
#include "train/loss/multi_scale_loss.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/gradcheck.h"
#include "tests/support/paths.h"
#include "tests/support/tensors.h"
#include "tests/train/loss_samples.h"
#include "train/loss/ensemble_loss.h"

using namespace aifs;
using namespace aifs::train;
using namespace aifs::test;

namespace {

SparseRowsPtr ring_average() {
  std::vector<int64_t> row, column;
  for (int64_t i = 0; i < 4; ++i) {
    for (const int64_t j : {i + 1, i + 3}) {
      row.push_back(i);
      column.push_back(j % 4);
    }
  }
  return std::make_shared<const SparseRows>(row, column, std::vector<float>(8, 0.5f), 4, 4);
}

LossPtr crps() {
  return std::make_shared<CrpsLoss>(0.95, example_options());
}

}  // namespace

TEST_CASE("a loss of scales has the reference value", "[multi_scale_loss]") {
  const MultiScaleLoss loss({ring_average(), nullptr}, {0.25, 0.75}, crps());
  require_value(loss(members(), target(), {}), 0.1549158632);
  require_value(MultiScaleLoss({ring_average()}, {1.0}, crps())(members(), target(), {}),
                0.2522373387);
  require_value(MultiScaleLoss({nullptr}, {1.0}, crps())(members(), target(), {}), 0.3412464964);
}

TEST_CASE("smoothers are read from files", "[multi_scale_loss]") {
  const std::string ring = fixture("npz/ring_csr.npz").string();
  const MultiScaleLoss loss(smoothers_of({ring, ""}, 4), {0.25, 0.75}, crps());
  require_value(loss(members(), target(), {}), 0.1549158632);
  REQUIRE_THROWS_WITH(smoothers_of({ring}, 5), ContainsSubstring("ring_csr.npz"));
}

TEST_CASE("every scale has a weight", "[multi_scale_loss]") {
  REQUIRE_THROWS_AS(MultiScaleLoss({ring_average(), nullptr}, {1.0}, crps()), Error);
}

TEST_CASE("gradients go through smoothers and increments", "[multi_scale_loss]") {
  const MultiScaleLoss loss({ring_average(), nullptr}, {0.25, 0.75}, crps());
  REQUIRE(gradient_error([&](const auto& x) { return loss(x[0], target(), {}); }, {members()}) <=
          gradient_tolerance());
}

TEST_CASE("a series of smoothers goes from coarse to fine", "[multi_scale_loss]") {
  const std::vector<SmootherOptions> series = smoother_series(3, 2, 0.123456789, 3.0);
  REQUIRE(series.size() == 3);
  REQUIRE(series[0].neighbours == 18);
  REQUIRE(series[2].neighbours == 2);
  REQUIRE(series[0].sigma == 1.11111);
  REQUIRE(series[2].sigma == 0.12346);
}

TEST_CASE("ranks compute scales from all nodes", "[multi_scale_loss]") {
  const MultiScaleLoss loss({ring_average(), nullptr}, {0.25, 0.75}, crps());
  const LossResult one = whole(loss, members(), target());
  const LossResult two = by_ranks(loss, members(), target(), {0, 1, 4});
  REQUIRE(max_difference(one.value, two.value) <= 1e-15);
  REQUIRE(max_difference(one.gradient, two.gradient) <= 1e-15);
}
