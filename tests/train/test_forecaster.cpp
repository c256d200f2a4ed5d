// SPDX-License-Identifier: Apache-2.0
#include "train/rollout.h"

#include "tests/support/catch.h"
#include "tests/support/tensors.h"
#include "tests/train/small_training.h"

using namespace aifs;
using namespace aifs::train;
using test::max_difference;
using test::SmallTraining;

namespace {

std::vector<at::Tensor> forecast(const SmallTraining& t, const at::Tensor& batch, int64_t steps) {
  const Forecaster forecaster(*t.network, t.variables, t.window, at::kCPU);
  std::vector<at::Tensor> predictions;
  forecaster.run(batch, steps,
                 [&](const ForecastStep& step) { predictions.push_back(step.prediction); });
  return predictions;
}

}  // namespace

TEST_CASE("a window names input rows up to 0 and truth rows after it", "[rollout]") {
  REQUIRE(Window{2, 1, 1}.offsets(1) == std::vector<int64_t>{-1, 0, 1});
  REQUIRE(Window{2, 1, 4}.offsets(2) == std::vector<int64_t>{-4, 0, 4, 8});
  const Window window{3, 2, 1};
  for (const int64_t steps : {1, 2, 5}) {
    const std::vector<int64_t> offsets = window.offsets(steps);
    REQUIRE(static_cast<int64_t>(offsets.size()) == window.num_times(steps));
    for (int64_t step = 0; step < steps; ++step) {
      const auto position = static_cast<size_t>(window.target_position(step));
      REQUIRE(offsets[position] == step * window.times_out + 1);
    }
  }
}

TEST_CASE("the first step sees the inputs and is compared with the next row", "[rollout]") {
  const SmallTraining t(12, 3, at::kDouble);
  const at::Tensor batch = t.sample(4, 1);
  const at::Tensor x = at::stack({batch.select(1, 0), batch.select(1, 1)}, 1);
  const auto columns = at::tensor(t.variables.input_columns(), at::kLong);
  const at::Tensor expected = t.network->forward(x.index_select(-1, columns));
  REQUIRE(max_difference(forecast(t, batch, 1).at(0), expected) == 0.0);
  const Forecaster forecaster(*t.network, t.variables, t.window, at::kCPU);
  forecaster.run(batch, 1, [&](const ForecastStep& step) {
    const auto outputs = at::tensor(t.variables.output_columns(), at::kLong);
    REQUIRE(max_difference(step.truth.select(1, 0),
                           t.sample(5, 1).select(1, 1).index_select(-1, outputs)) == 0.0);
  });
}

TEST_CASE("the second step sees its own prediction and the forcings of its time", "[rollout]") {
  const SmallTraining t(12, 3, at::kDouble);
  const at::Tensor batch = t.sample(4, 2);
  const auto predictions = forecast(t, batch, 2);
  // Put what was predicted where the truth was: one step from there is the same forecast.
  at::Tensor altered = batch.clone();
  for (const char* name : {"a", "b"}) {
    const int64_t column = t.dataset->info().column(name);
    altered.select(1, 2)
        .select(-1, column)
        .copy_(predictions[0].select(1, 0).select(-1, t.variables.find_output(name)));
  }
  REQUIRE(max_difference(forecast(t, altered.narrow(1, 1, 3), 1).at(0), predictions[1]) <= 1e-13);
  // A diagnostic is never read, a forcing is.
  at::Tensor other = batch.clone();
  other.select(1, 2).select(-1, t.dataset->info().column("d")).add_(1.0);
  REQUIRE(max_difference(forecast(t, other, 2).at(1), predictions[1]) == 0.0);
  other.select(1, 2).select(-1, t.dataset->info().column("f")).add_(1.0);
  REQUIRE(max_difference(forecast(t, other, 2).at(1), predictions[1]) > 1e-6);
}

TEST_CASE("gradients flow through all steps", "[rollout]") {
  const SmallTraining t(12, 3, at::kDouble);
  at::Tensor batch = t.sample(4, 3).detach().requires_grad_(true);
  forecast(t, batch, 3).at(2).sum().backward();
  REQUIRE(batch.grad().select(1, 0).abs().max().item<double>() > 0.0);
}

TEST_CASE("persistence is the newest input of the outputs", "[rollout]") {
  const SmallTraining t(12, 3, at::kDouble);
  const Forecaster forecaster(*t.network, t.variables, t.window, at::kCPU);
  const at::Tensor batch = t.sample(4, 1);
  const at::Tensor expected =
      batch.select(1, 1).index_select(-1, at::tensor(t.variables.output_columns(), at::kLong));
  REQUIRE(max_difference(forecaster.persistence(batch).select(1, 0), expected) == 0.0);
}
