// SPDX-License-Identifier: Apache-2.0
// Where NaN and infinity come from. Nothing here runs while numbers are sound but one check per
// step of the loss and of the sum of gradients; once one of them is not finite, fields, weights,
// gradients and the operations of the network are searched for the first bad value.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/file_io.h"
#include "data/loader/data_loader.h"
#include "model/base/parameters.h"
#include "train/optim/optimizer.h"

namespace aifs::train {

// Says what a run does about it: leave with an error, or leave the step out.
enum class OnNonfinite { kStop, kSkip };

// Describes what is known of a step whose numbers are not finite.
struct NonfiniteReport {
  std::string text;           // empty: another rank knows
  bool input_is_bad = false;  // the weights are not to blame
  std::string hint;           // of a bad input
};

// Describes what positions in fields stand for.
struct FieldPlaces {
  std::vector<std::string> variables;                  // of the last axis
  std::span<const double> lat_deg = {}, lon_deg = {};  // of own nodes
  int64_t first_node = 0;  // number of the first own node in the whole grid
};

// "prediction of step 1: variable t_850 (level 850) is nan in sample 0, time 0, member 0, at node
// 17 (12.5 N, 30 E)" for the first value of (B, T, E, N, V) that is not finite, in memory order;
// empty if there is none.
std::string first_bad_value(const at::Tensor& field, const std::string& what,
                            const FieldPlaces& places);

// "weight (or gradient of) 'encoder.0.mlp.0.weight' is inf at element 3", or empty.
std::string first_bad_weight(const model::ParameterSet& parameters);
std::string first_bad_gradient(const model::ParameterSet& parameters,
                               const std::vector<OwnPart>& parts);

// Runs `function` and says which operation was the first to give a value that is not finite from
// finite ones, and which weights were used last before: "output of aten::addmm, (162, 64),
// operation 57, after the weights 'processor.proc.0.node_mlp.mlp.0.weight'"; empty if none did.
// `progress` is called after each operation.
std::string first_bad_operation(const model::ParameterSet& parameters,
                                const std::function<void()>& function,
                                const std::function<void()>& progress = {});

// True if all elements are finite: one pass.
bool are_finite(const std::vector<at::Tensor>& tensors);

// Writes <folder>/batch.safetensors (values, anchors, nan_mask) and <folder>/report.txt.
void write_dump(const fs::path& folder, const data::Batch& batch, const std::string& report);

constexpr auto enum_table(OnNonfinite) {
  using enum OnNonfinite;
  return std::to_array<EnumName<OnNonfinite>>({{kStop, "stop"}, {kSkip, "skip"}});
}

}  // namespace aifs::train
