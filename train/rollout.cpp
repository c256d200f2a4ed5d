// SPDX-License-Identifier: Apache-2.0
#include "train/rollout.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"
#include "core/time.h"
#include "data/loader/sampler.h"
#include "model/base/recompute.h"

namespace aifs::train {

std::vector<int64_t> Window::offsets(int64_t steps) const {
  std::vector<int64_t> rows;
  for (int64_t t = 1 - times_in; t <= steps * times_out; ++t)
    rows.push_back(t * row_step);
  return rows;
}

int64_t rollout_of_last_step(const RolloutOptions& options, const LoopState& state) {
  const bool epoch_ended = state.batch_in_epoch == 0 && state.epoch > 0;
  return rollout_at(options, epoch_ended ? state.epoch - 1 : state.epoch,
                    std::max<int64_t>(state.step - 1, 0));
}

void check_training_samples(const data::DatasetInfo& info, const Window& window, int64_t longest) {
  const std::vector<int64_t> offsets = window.offsets(longest);
  if (data::usable_anchors(info.num_rows(), info.missing_rows, offsets).empty()) {
    throw DataError(concat("'", info.name, "' has no training sample: ", info.num_rows(),
                           " dates from ", format_date(info.dates_s.front()), " to ",
                           format_date(info.dates_s.back()), ", ", info.missing_rows.size(),
                           " of them missing; a sample needs ", offsets.size(), " in a row"),
                    "widen data.training.start and end, or shorten the rollout");
  }
}

ForecastColumns::ForecastColumns(const data::VariableTable& variables, at::Device device) {
  const auto index = [&](const std::vector<int64_t>& list) {
    return at::tensor(list, at::kLong).to(device);
  };
  inputs = index(variables.input_columns());
  outputs = index(variables.output_columns());
  input_prognostic = index(variables.input_prognostic());
  output_prognostic = index(variables.output_prognostic());
}

at::Tensor advance_inputs(const at::Tensor& x, const at::Tensor& prediction,
                          const at::Tensor& truth, const ForecastColumns& columns,
                          const at::Tensor& output_mask) {
  // The newest predicted times replace the oldest inputs; forcings are known for them.
  const int64_t times_in = x.size(1), times_out = prediction.size(1);
  const int64_t replaced = std::min(times_in, times_out), first = times_out - replaced;
  at::Tensor predicted =
      prediction.narrow(1, first, replaced).index_select(-1, columns.output_prognostic);
  const at::Tensor known = truth.narrow(1, first, replaced)
                               .index_select(-1, columns.inputs)
                               .expand({-1, -1, x.size(2), -1, -1});
  if (output_mask.defined()) {
    predicted = at::where(output_mask.view({-1, 1}), predicted,
                          known.index_select(-1, columns.input_prognostic));
  }
  const at::Tensor newest = known.index_copy(-1, columns.input_prognostic, predicted);
  if (replaced == times_in) return newest;
  return at::cat({x.narrow(1, replaced, times_in - replaced), newest}, 1);
}

namespace {

std::vector<ForecastColumns> columns_of(const std::vector<const data::VariableTable*>& variables,
                                        at::Device device) {
  std::vector<ForecastColumns> columns;
  for (const data::VariableTable* table : variables)
    columns.emplace_back(*table, device);
  return columns;
}

}  // namespace

Forecaster::Forecaster(const model::EncoderProcessorDecoder& network,
                       const data::VariableTable& variables, const Window& window,
                       at::Device device, ForecastExtras extras)
    : Forecaster(network, std::vector{&variables}, window, device, std::move(extras)) {}

Forecaster::Forecaster(const model::EncoderProcessorDecoder& network,
                       const std::vector<const data::VariableTable*>& variables,
                       const Window& window, at::Device device, ForecastExtras extras)
    : network_(network),
      window_(window),
      columns_(columns_of(variables, device)),
      extras_(std::move(extras)) {
  extras_.output_masks.resize(columns_.size());
}

void Forecaster::run(const at::Tensor& batch, int64_t steps,
                     const std::function<void(const ForecastStep&)>& visit,
                     const std::function<void()>& between) const {
  run(std::vector{batch}, steps, visit, between);
}

void Forecaster::run(const std::vector<at::Tensor>& batches, int64_t steps,
                     const std::function<void(const ForecastStep&)>& visit,
                     const std::function<void()>& between) const {
  std::vector<at::Tensor> inputs;
  for (const at::Tensor& batch : batches) {
    AIFS_CHECK(batch.size(1) >= window_.num_times(steps), "a batch of ", batch.size(1),
               " times for a forecast of ", steps, " steps");
    inputs.push_back(batch.narrow(1, 0, window_.times_in));
  }
  const auto later = [&](int64_t step, size_t dataset) {
    return batches[dataset].narrow(1, window_.target_position(step), window_.times_out);
  };
  Advanced advanced;
  if (between) advanced = [&](int64_t, const std::vector<at::Tensor>&) { between(); };
  run_from(inputs, steps, later, visit, advanced);
}

void Forecaster::run_from(const std::vector<at::Tensor>& inputs, int64_t steps, const Later& later,
                          const std::function<void(const ForecastStep&)>& visit,
                          const Advanced& advanced) const {
  AIFS_CHECK(inputs.size() == columns_.size(), inputs.size(), " batches of ", columns_.size(),
             " datasets");
  std::vector<at::Tensor> x;
  for (size_t d = 0; d < inputs.size(); ++d) {
    x.push_back(inputs[d].index_select(-1, columns_[d].inputs));
    if (network_.num_members() > 1) x[d] = x[d].repeat({1, 1, network_.num_members(), 1, 1});
  }
  for (int64_t step = 0; step < steps; ++step) {
    model::StepContext context{.step = step};
    context.noise = extras_.noise ? extras_.noise(step) : network_.draw_noise(x[0]);
    const std::vector<at::Tensor> predictions =
        forward(x, context, extras_.recompute_steps && steps > 1);
    for (size_t d = 0; d < predictions.size(); ++d) {
      if (!predictions[d].defined()) continue;
      const at::Tensor truth =
          extras_.with_truth ? later(step, d).index_select(-1, columns_[d].outputs) : at::Tensor();
      visit({step, predictions[d], truth, d});
    }
    if (step + 1 == steps) break;
    // Both ends of a pipeline go on from it.
    const std::vector<at::Tensor> known =
        network_.stage_links().last_to_first(predictions, x[0].device());
    for (size_t d = 0; d < known.size(); ++d)
      x[d] = advance_inputs(x[d], known[d], later(step, d), columns_[d], extras_.output_masks[d]);
    if (advanced) advanced(step, x);
  }
}

std::vector<at::Tensor> Forecaster::forward(const std::vector<at::Tensor>& x,
                                            const model::StepContext& context, bool again) const {
  if (!again) return network_.forward(x, context);
  // Noise was drawn outside, so that both passes see the same.
  const auto step = [&network = network_, context](const std::vector<at::Tensor>& in) {
    return network.forward(in, context);
  };
  return model::recompute(step, x);
}

at::Tensor Forecaster::persistence(const at::Tensor& batch, size_t dataset) const {
  return batch.narrow(1, window_.times_in - 1, 1).index_select(-1, columns_[dataset].outputs);
}

}  // namespace aifs::train
