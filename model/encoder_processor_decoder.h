// SPDX-License-Identifier: Apache-2.0
// The whole network: input assembly, encoder, processor, decoder, residual, bounding (Anemoi's
// AnemoiModelEncProcDec). It takes a prebuilt graph and never builds one.
#pragma once

#include "model/layers/gnn.h"
#include "model/options.h"

namespace aifs::model {

// What goes in and out: times and variables.
struct FieldLayout {
  int64_t times_in = 2, times_out = 1;
  int64_t num_inputs = 0;                  // V_in: forcing and prognostic
  OutputVariables outputs;                 // V_out: prognostic and diagnostic
  std::vector<int64_t> input_prognostic;   // the k-th prognostic variable among the inputs ...
  std::vector<int64_t> output_prognostic;  // ... and among the outputs

  int64_t num_outputs() const { return static_cast<int64_t>(outputs.names.size()); }
};

class EncoderProcessorDecoder {
 public:
  // Registers all tensors in `parameters` under the names of Anemoi's state_dict (relative to the
  // network, dataset "data", mapper "0"). Throws ConfigError with paths under "model".
  EncoderProcessorDecoder(ParameterSet& parameters, const ModelOptions& options,
                          const GraphTensors& graph, const FieldLayout& layout);

  // x: (B, T, E, N, V_in) normalised, newest time last, in the type of the parameters.
  // Returns (B, T', E, N, V_out) normalised, after residual and bounding, in the type of x.
  at::Tensor forward(const at::Tensor& x) const;

  const FieldLayout& layout() const { return layout_; }

 private:
  at::Tensor with_residual(const at::Tensor& y, const at::Tensor& x) const;

  FieldLayout layout_;
  bool latent_skip_;
  ResidualKind residual_;
  NodeAttributes data_attributes_, hidden_attributes_;
  std::unique_ptr<GnnEncoder> encoder_;
  std::unique_ptr<GnnProcessor> processor_;
  std::unique_ptr<GnnDecoder> decoder_;
  at::Tensor input_prognostic_, output_prognostic_;  // i64
  std::vector<Bounding> boundings_;
};

}  // namespace aifs::model
