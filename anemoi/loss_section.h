// SPDX-License-Identifier: Apache-2.0
// The section "loss" from Anemoi's section "training" alone: where there is no whole configuration.
#pragma once

#include "anemoi/sections.h"
#include "anemoi/training_config.h"

namespace aifs::anemoi {

// Translates "training_loss", "scalers" and "variable_groups". Throws ConfigError.
Imported import_loss_section(const Json& training, const LossRules& rules);

}  // namespace aifs::anemoi
