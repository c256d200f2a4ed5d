// SPDX-License-Identifier: Apache-2.0
// Columns on their own: no node sees another (Anemoi's PointWise mappers and processor). Hidden
// nodes are the data nodes.
#pragma once

#include <vector>

#include "model/layers/mlp.h"
#include "model/layers/part.h"
#include "model/layers/steps.h"

namespace aifs::model {

struct PointWiseOptions {
  int64_t channels = 0;
  int64_t hidden = 0;
  Activation activation = Activation::kGelu;
  LayerNormOptions norm = {};
  RecomputePolicy recompute = RecomputePolicy::kNone;
  int64_t chunks = 1;
  int64_t offload = 0;  // processors: inputs of blocks or groups that are kept on the host
  bool zero_extractor = false;
};

// One linear map of the data rows.
class PointWiseEncoder : public Encoder {
 public:
  PointWiseEncoder(const ParameterScope& scope, const PointWiseOptions& options,
                   int64_t data_width);
  Encoded forward(const at::Tensor& x_data, const at::Tensor& x_hidden,
                  int64_t copies) const override;

 private:
  Linear emb_nodes_src_;
};

// Per layer linear, norm, activation, and a linear back unless hidden = channels. No residual.
class PointWiseProcessor : public Processor {
 public:
  PointWiseProcessor(const ParameterScope& scope, const PointWiseOptions& options,
                     int64_t num_layers);
  State run(const State& state, int64_t copies) const override;

 private:
  struct Layer {
    Linear in, out;
    LayerNorm norm;
  };
  PointWiseOptions options_;
  std::vector<Layer> layers_;
  LayerUnits units_;
};

// A norm and a linear map of the latent rows.
class PointWiseDecoder : public Decoder {
 public:
  PointWiseDecoder(const ParameterScope& scope, const PointWiseOptions& options,
                   int64_t latent_width, int64_t out_width);
  at::Tensor forward(const at::Tensor& latent, const at::Tensor& data,
                     int64_t copies) const override;

 private:
  LayerNorm norm_;
  Linear linear_;
};

}  // namespace aifs::model
