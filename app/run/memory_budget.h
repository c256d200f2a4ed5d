// SPDX-License-Identifier: Apache-2.0
// model.memory_budget: what the backward pass runs again follows from the memory of a rank.
#pragma once

#include "plan/step_plan.h"

namespace aifs::app {

struct FittedModel {
  model::ModelOptions options;
  std::string text;  // "encoder and decoder block in 4 chunks, processor block: 14.1 of 16 GiB"
};

// The network of `input`, for ranks with the rows of `division`, with as little run again as fits
// into its budget on paper (plan/), never less than it asks for; unchanged without a budget. Throws
// ConfigError if nothing fits.
FittedModel fit_memory(const plan::StepInput& input, const plan::Division& division);

}  // namespace aifs::app
