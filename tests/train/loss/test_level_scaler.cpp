// SPDX-License-Identifier: Apache-2.0
#include "train/loss/level_scaler.h"

#include "tests/train/close_weights.h"
#include "train/loss/variable_scalers.h"

using namespace aifs;
using namespace aifs::train;
using test::general_weights;
using test::require_close;
using test::scaled_names;

namespace {

LevelScalerOptions levels(LevelScaling kind, double y_intercept) {
  return {.kind = kind, .y_intercept = y_intercept, .slope = 0.001, .parameters = {"y"}};
}

}  // namespace

TEST_CASE("weights go by parameter, levels by pressure", "[level_scaler]") {
  const at::Tensor general = variable_weights(scaled_names(), general_weights());
  require_close(general, {0.5, 0.5, 0.5, 1, 0.1, 100, 1}, 1e-7);
  require_close(general * level_weights(scaled_names(), levels(LevelScaling::kRelu, 0.2)),
                {0.1, 0.25, 0.425, 1, 0.1, 100, 1});
  require_close(general * level_weights(scaled_names(), levels(LevelScaling::kLinear, 0.0)),
                {0.025, 0.25, 0.425, 1, 0.1, 100, 1});
  require_close(general * level_weights(scaled_names(), levels(LevelScaling::kPolynomial, 0.2)),
                {0.10125, 0.225, 0.46125, 1, 0.1, 100, 1});
  require_close(level_weights(scaled_names(), levels(LevelScaling::kNone, 0.2)),
                {1, 1, 1, 1, 1, 1, 1});
}
