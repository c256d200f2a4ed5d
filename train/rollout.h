// SPDX-License-Identifier: Apache-2.0
// Autoregressive forecasts: which times of a batch are input and truth, and how inputs advance.
#pragma once

#include <functional>
#include <vector>

#include "data/fields/dataset.h"
#include "data/fields/variables.h"
#include "model/network/encoder_processor_decoder.h"
#include "train/optim/schedule.h"
#include "train/output/loop_state.h"

namespace aifs::train {

// The times of one sample. Time offset 0 is the newest input.
struct Window {
  int64_t times_in = 2, times_out = 1;
  int64_t row_step = 1;  // dataset rows per time step of the model

  // Row offsets of the inputs and of the truth of `steps` model steps, ascending.
  std::vector<int64_t> offsets(int64_t steps) const;
  // Position in those offsets of the first truth of step s.
  int64_t target_position(int64_t step) const { return times_in + step * times_out; }
  int64_t num_times(int64_t steps) const { return times_in + steps * times_out; }
};

// Throws DataError if no training sample is long enough for `longest` forecast steps, those of the
// longest rollout of the run: better at the start than when an epoch asks for it.
void check_training_samples(const data::DatasetInfo& info, const Window& window, int64_t longest);

// The forecast steps of the training step before this position (of the first one, at the start).
int64_t rollout_of_last_step(const RolloutOptions& options, const LoopState& state);

// One step of a forecast of one dataset: prediction and truth, (B, T', E, N, V_out), normalised.
struct ForecastStep {
  int64_t step = 0;
  at::Tensor prediction;
  at::Tensor truth;    // E may be that of the dataset
  size_t dataset = 0;  // its number, in the order of the network
};

// Columns of the variables as inputs and outputs number them, i64 on the device of the fields.
struct ForecastColumns {
  at::Tensor inputs, outputs;                      // of all dataset variables
  at::Tensor input_prognostic, output_prognostic;  // of inputs, of outputs

  ForecastColumns(const data::VariableTable& variables, at::Device device);
};

// The inputs of the next step: x (B, T, E, N, V_in) with its oldest times dropped and the newest
// predicted ones (B, T', E, N, V_out) appended. `truth` (B, T', E or 1, N, V) holds all dataset
// variables at the predicted times: forcings come from it and, where `output_mask` (N) is false,
// prognostic variables too.
at::Tensor advance_inputs(const at::Tensor& x, const at::Tensor& prediction,
                          const at::Tensor& truth, const ForecastColumns& columns,
                          const at::Tensor& output_mask = {});

// Describes what some forecasts need besides a batch.
struct ForecastExtras {
  // Of each dataset: (N) bool on the device of the fields, true where the network decides;
  // undefined, or an empty list: everywhere.
  std::vector<at::Tensor> output_masks = {};
  std::function<at::Tensor(int64_t step)> noise = {};  // of ensembles; none: drawn by the network
  bool recompute_steps = false;                        // run each step again in the backward pass
  bool with_truth = true;                              // visitors are given the truth
};

class Forecaster {
 public:
  Forecaster(const model::EncoderProcessorDecoder& network, const data::VariableTable& variables,
             const Window& window, at::Device device, ForecastExtras extras = {});
  // For a network of several datasets, with the variables of each. Noise is for one dataset.
  Forecaster(const model::EncoderProcessorDecoder& network,
             const std::vector<const data::VariableTable*>& variables, const Window& window,
             at::Device device, ForecastExtras extras = {});

  // Runs `steps` steps from the inputs of `batch` (B, num_times(steps), E, N, V), all dataset
  // variables, normalised, in the type and on the device of the network. Gradients flow through all
  // steps. Forcings of later inputs are those of the batch. A network of several members makes as
  // many forecasts of a batch with E = 1. Of several stages of a pipeline, which all call, the last
  // one visits. `between` is called by all between two steps: what it throws ends the forecast.
  void run(const at::Tensor& batch, int64_t steps,
           const std::function<void(const ForecastStep&)>& visit,
           const std::function<void()>& between = {}) const;
  // Forecasts with one batch for each dataset, of the same dates: each step visits them in order.
  void run(const std::vector<at::Tensor>& batches, int64_t steps,
           const std::function<void(const ForecastStep&)>& visit,
           const std::function<void()>& between = {}) const;

  // The values of all variables of a dataset, (B, T', E, N, V), at the times that a step predicts.
  using Later = std::function<at::Tensor(int64_t step, size_t dataset)>;
  // Is told the inputs of the step behind `step`, of each dataset (B, T, E, N, V_in), as columns of
  // inputs number them.
  using Advanced = std::function<void(int64_t step, const std::vector<at::Tensor>& next)>;
  // As run(), from the inputs of each dataset alone, (B, times_in, E, N, V). `later` is asked when
  // a step is visited, if visitors are given the truth, and before the next one, datasets in order:
  // not after the last step without truth. `advanced` is called by all between two steps, as
  // `between` of run().
  void run_from(const std::vector<at::Tensor>& inputs, int64_t steps, const Later& later,
                const std::function<void(const ForecastStep&)>& visit,
                const Advanced& advanced = {}) const;

  // True if forecasts depend on the default random generator.
  bool draws_noise() const { return network_.has_noise(); }

  // The newest input of the output variables, (B, 1, E, N, V_out): what persistence forecasts.
  at::Tensor persistence(const at::Tensor& batch, size_t dataset = 0) const;

 private:
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& x,
                                  const model::StepContext& context, bool again) const;

  const model::EncoderProcessorDecoder& network_;
  Window window_;
  std::vector<ForecastColumns> columns_;  // of each dataset
  ForecastExtras extras_;
};

}  // namespace aifs::train
