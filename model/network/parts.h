// SPDX-License-Identifier: Apache-2.0
// Builds encoders, processors and decoders of any family from their options.
#pragma once

#include "model/layers/part.h"
#include "model/layers/trainable_features.h"
#include "model/network/options.h"

namespace aifs::model {

// Between which node sets a part works, and what is learnt per edge there.
struct PartPlace {
  const GraphTensors& graph;
  std::string source, target;
  int64_t edge_trainable = 0;
  KernelChoice kernels = KernelChoice::kAuto;
};

// Widths around a mapper.
struct MapperWidths {
  int64_t channels = 0;
  int64_t source = 0, target = 0;  // of the rows that come in
  int64_t out = 0;                 // of a decoder's result
};

// `scope` is that of the part ("encoder.0"), `edge_scope` that of its edge features. Tensors get
// the names of Anemoi's state_dict. Families without edges register none.
std::unique_ptr<Encoder> make_encoder(const ParameterScope& scope, const ParameterScope& edge_scope,
                                      const BlockOptions& options, double eps,
                                      const PartPlace& place, const MapperWidths& widths);
// Norms take a condition of `condition_width` if that is not zero.
std::unique_ptr<Processor> make_processor(const ParameterScope& scope,
                                          const ParameterScope& edge_scope,
                                          const BlockOptions& options, LayerNormOptions norm,
                                          const PartPlace& place, int64_t channels,
                                          int64_t num_layers);
std::unique_ptr<Decoder> make_decoder(const ParameterScope& scope, const ParameterScope& edge_scope,
                                      const BlockOptions& options, bool zero_extractor, double eps,
                                      const PartPlace& place, const MapperWidths& widths);

// The width of the data rows that an encoder hands on.
int64_t handed_on_width(const BlockOptions& encoder, const MapperWidths& widths);

}  // namespace aifs::model
