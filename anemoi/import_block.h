// SPDX-License-Identifier: Apache-2.0
// One part of a network: a mapper or the processor.
#pragma once

#include "anemoi/sections.h"

namespace aifs::anemoi {

enum class Part { kEncoder, kProcessor, kDecoder };

struct PartContext {
  Part part = Part::kEncoder;
  Section out;                   // of the part
  Section model;                 // for what all parts have in common
  int64_t channels;              // of the model
  bool has_own_channels = true;  // else widths follow from the model's
  bool is_conditional = false;   // norms of the processor may be shifted by noise
};

void import_block(const Place& block, const PartContext& context);

// The name here of an activation's class such as "torch.nn.GELU", or "" after saying so.
std::string import_activation(const Place& place, const std::string& class_name);

}  // namespace aifs::anemoi
