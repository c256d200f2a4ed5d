// SPDX-License-Identifier: Apache-2.0
// The section "loss" from Anemoi's section "training" alone: where there is no whole configuration.
#pragma once

#include <string>
#include <vector>

#include "anemoi/training_config.h"

namespace aifs::anemoi {

struct LossRules {
  // Every scaler keeps its name, as one of loss.named_scalers.
  bool keeps_names = false;
  // Names of scalers without a definition, which the caller adds to loss.named_scalers.
  std::vector<std::string> defined_elsewhere = {};
  // Scalers that are translated even if no loss uses them.
  std::vector<std::string> also = {};
  // The scaler that comes first in losses of class Weighted...; empty: none.
  std::string sample_weights = {};
  // Whether the graph has edges from data nodes to data nodes, for loss_graph.
  bool has_data_edges = false;
};

// Translates "training_loss", "scalers" and "variable_groups". Throws ConfigError.
Imported import_loss_section(const Json& training, const LossRules& rules);

}  // namespace aifs::anemoi
