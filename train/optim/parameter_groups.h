// SPDX-License-Identifier: Apache-2.0
// Parameters chosen by name: which are frozen, and which have a learning rate or a decay of their
// own. A pattern is a whole name, the name of a part of the network ("encoder" stands for all of
// "encoder."), or has "*" for any text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config.h"
#include "model/base/parameters.h"

namespace aifs::train {

bool matches_pattern(const std::string& name, const std::string& pattern);

struct ParameterGroupOptions {
  std::vector<std::string> parameters;  // patterns
  double lr_factor = 1.0;
  double weight_decay = -1.0;  // negative: that of the optimiser

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

// A piece of the flat buffers that is updated alike.
struct ParameterRange {
  int64_t begin = 0, end = 0;
  double lr_factor = 1.0;
  double weight_decay = 0.0;
};

// The flat buffer without frozen parameters, cut where groups begin and end; ranges ascend and
// neighbours that are alike are one. The first group that a name fits counts. Throws ConfigError
// (paths "optimizer.groups.<i>.parameters.<j>" and "optimizer.freeze.<j>") for a pattern that fits
// no trainable parameter, and if nothing is left to train.
std::vector<ParameterRange> parameter_ranges(const model::ParameterSet& parameters,
                                             const std::vector<ParameterGroupOptions>& groups,
                                             const std::vector<std::string>& frozen,
                                             double weight_decay);

// Takes what the patterns fit out of differentiation: no gradients are computed for it.
void freeze(const model::ParameterSet& parameters, const std::vector<std::string>& patterns);

}  // namespace aifs::train
