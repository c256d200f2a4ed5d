// SPDX-License-Identifier: Apache-2.0
// Starts a new run from the weights of another: tensors by name, and within those that have a
// column or a row for each variable, columns and rows by the names of the variables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/parameters.h"
#include "train/output/checkpoint.h"

namespace aifs::train {

// One axis that has a place for each variable at each time: time outer, variable inner.
struct VariableAxis {
  std::vector<std::string> before, now;  // variables of the weights, and of this run
  int64_t times_before = 1, times_now = 1;
  bool last_is_same = true;  // of the times, as of inputs; else the first, as of outputs

  int64_t size_before() const { return static_cast<int64_t>(before.size()) * times_before; }
  int64_t size_now() const { return static_cast<int64_t>(now.size()) * times_now; }
  bool is_same() const { return before == now && times_before == times_now; }
  // For each place now the one before; -1: there is none.
  std::vector<int64_t> places() const;
};

// The inputs and outputs of weights and of a run that starts from them.
struct VariableMatch {
  VariableAxis inputs, outputs;
};

struct InitOptionsOfWeights {
  std::vector<std::string> may_skip;     // patterns (parameter_groups.h) of what need not fit
  std::optional<VariableMatch> by_name;  // none: variables are the same
};

// Says what becomes of one tensor of the run or of the weights.
enum class InitUse { kTaken, kByVariable, kNew, kLeftOut, kOwn };
struct InitTensor {
  std::string name;
  InitUse use = InitUse::kTaken;
  std::string text;  // why, or which variables are new and left out; empty: there is nothing to say
};

// Describes what a run has taken of the weights of another, in the order of its tensors, then of
// those that only the weights have.
struct InitReport {
  std::vector<InitTensor> tensors;

  int64_t count(InitUse use) const;
  // A table of how many tensors of each part were taken, taken by variable, new, not used, or made
  // of this run's data and graph, a line each.
  std::string table() const;
};

// Copies tensors of the same name and shape, but for coordinates of nodes and limits that are made
// of statistics: those of this run's graph and data hold. With `by_name`, inputs that are new weigh
// 0, and outputs that are new keep what they were drawn with. Adapters are new, and those of the
// weights are in the weights. Throws ConfigError listing what does not fit and is not allowed to.
// Local.
InitReport init_parameters(const CheckpointInfo& checkpoint, model::ParameterSet& parameters,
                           const InitOptionsOfWeights& options);

}  // namespace aifs::train
