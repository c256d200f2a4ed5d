// SPDX-License-Identifier: Apache-2.0
#include "train/rollout.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"

namespace aifs::train {

std::vector<int64_t> Window::offsets(int64_t steps) const {
  std::vector<int64_t> rows;
  for (int64_t t = 1 - times_in; t <= steps * times_out; ++t)
    rows.push_back(t * row_step);
  return rows;
}

Forecaster::Forecaster(const model::EncoderProcessorDecoder& network,
                       const data::VariableTable& variables, const Window& window,
                       at::Device device)
    : network_(network), window_(window) {
  const auto index = [&](const std::vector<int64_t>& list) {
    return at::tensor(list, at::kLong).to(device);
  };
  input_columns_ = index(variables.input_columns());
  output_columns_ = index(variables.output_columns());
  input_prognostic_ = index(variables.input_prognostic());
  output_prognostic_ = index(variables.output_prognostic());
}

void Forecaster::run(const at::Tensor& batch, int64_t steps,
                     const std::function<void(const ForecastStep&)>& visit) const {
  AIFS_CHECK(batch.size(1) >= window_.num_times(steps), "a batch of ", batch.size(1),
             " times for a forecast of ", steps, " steps");
  at::Tensor x = batch.narrow(1, 0, window_.times_in).index_select(-1, input_columns_);
  for (int64_t step = 0; step < steps; ++step) {
    const at::Tensor prediction = network_.forward(x);
    const at::Tensor truth = batch.narrow(1, window_.target_position(step), window_.times_out)
                                 .index_select(-1, output_columns_);
    visit({step, prediction, truth});
    if (step + 1 < steps) x = advance(x, prediction, batch, step);
  }
}

at::Tensor Forecaster::persistence(const at::Tensor& batch) const {
  return batch.narrow(1, window_.times_in - 1, 1).index_select(-1, output_columns_);
}

at::Tensor Forecaster::advance(const at::Tensor& x, const at::Tensor& prediction,
                               const at::Tensor& batch, int64_t step) const {
  // The newest predicted times replace the oldest inputs; forcings are known for them.
  const int64_t replaced = std::min(window_.times_in, window_.times_out);
  const int64_t first = window_.times_out - replaced;
  const at::Tensor predicted =
      prediction.narrow(1, first, replaced).index_select(-1, output_prognostic_);
  const at::Tensor known = batch.narrow(1, window_.target_position(step) + first, replaced)
                               .index_select(-1, input_columns_);
  const at::Tensor newest = known.index_copy(-1, input_prognostic_, predicted);
  if (replaced == window_.times_in) return newest;
  return at::cat({x.narrow(1, replaced, window_.times_in - replaced), newest}, 1);
}

}  // namespace aifs::train
