// SPDX-License-Identifier: Apache-2.0
// Which encoder, decoder, residual and output mask each of several datasets has.
#pragma once

#include <string>

#include "data/options.h"
#include "model/network/options.h"

namespace aifs::app {

// The parts of one dataset: those of its names in model.encoders, model.decoders,
// model.residuals and model.output_masks, else those of the model. Refers to the options.
struct NamedParts {
  std::string encoder_name = "0", decoder_name = "0";
  const model::BlockOptions* encoder = nullptr;
  const model::DecoderOptions* decoder = nullptr;
  const model::ResidualOptions* residual = nullptr;
  std::string output_mask, output_mask_path = "model.output_mask";  // empty: none
  model::PartPaths paths = {};
};
NamedParts parts_of(const model::ModelOptions& model, const data::DataOptions& data,
                    size_t dataset);

// Throws ConfigError for parts, limits and learnt widths of datasets or meshes that there are not,
// and for a decoder that several datasets name.
void check_named_parts(const model::ModelOptions& model, const data::DataOptions& data);

}  // namespace aifs::app
