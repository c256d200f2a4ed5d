// SPDX-License-Identifier: Apache-2.0
#include "train/loss/values_scaler.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"

namespace aifs::train {

namespace {

// In the order of the enumerators of Axis.
const std::vector<std::string>& names_of_axes() {
  static const std::vector<std::string> names{"batch", "time", "ensemble", "grid", "variable"};
  return names;
}

}  // namespace

void ValuesKind::bind(config::Binder& b) {
  WeightsKind::bind(b);
  b.text_list("axes", axis_names,
              {"the dimensions of errors on which they act, in this order: batch, time, ensemble, "
               "grid, variable"});
  b.integer_list("shape", shape, {.min = 1},
                 {"how many there are along each axis; empty: there is one axis"});
  b.number_list("values", values, {}, {"the weights, the last axis runs fastest"});
}

void ValuesKind::validate(const std::string& path) const {
  int64_t last = -1;
  for (size_t i = 0; i < axis_names.size(); ++i) {
    const auto found = std::find(names_of_axes().begin(), names_of_axes().end(), axis_names[i]);
    if (found == names_of_axes().end()) {
      throw ConfigError(concat(path, ".axes.", i), concat("'", axis_names[i], "' is no axis"),
                        nearest_names(axis_names[i], names_of_axes()));
    }
    if (found - names_of_axes().begin() <= last) {
      throw ConfigError(concat(path, ".axes"), "must be in the order of the dimensions of errors",
                        "batch, time, ensemble, grid, variable");
    }
    last = found - names_of_axes().begin();
  }
  if (axis_names.empty())
    throw ConfigError(path + ".axes", "names none: on what do the values act?");
  const bool is_line = shape.empty() && axis_names.size() == 1;
  int64_t wanted = 1;
  for (const int64_t length : shape) {
    if (__builtin_mul_overflow(wanted, length, &wanted))
      throw ConfigError(path + ".shape", "is larger than any tensor");
  }
  if (!is_line && shape.size() != axis_names.size()) {
    throw ConfigError(path + ".shape",
                      concat("has ", shape.size(), " lengths for ", axis_names.size(), " axes"));
  }
  if (values.empty() || (!is_line && wanted != std::ssize(values))) {
    throw ConfigError(path + ".values",
                      concat("are ", values.size(),
                             is_line ? std::string() : concat(", the shape needs ", wanted)));
  }
}

std::vector<Axis> ValuesKind::axes() const {
  std::vector<Axis> acting;
  for (const std::string& name : axis_names) {
    const auto found = std::find(names_of_axes().begin(), names_of_axes().end(), name);
    acting.push_back(static_cast<Axis>(found - names_of_axes().begin()));
  }
  return acting;
}

void ValuesKind::check_lengths(const ScalerPlace& place) const {
  const LossInputs& inputs = place.inputs;
  const std::vector<Axis> acting = axes();
  for (size_t i = 0; i < acting.size(); ++i) {
    const int64_t length = shape.empty() ? std::ssize(values) : shape[i];
    int64_t wanted = length;  // batches and members are known later
    if (acting[i] == kVariable) wanted = inputs.variables.num_outputs();
    if (acting[i] == kTime) wanted = inputs.times_out;
    if (acting[i] == kGrid && place.modes == 0) wanted = inputs.nodes.num_nodes();
    if (acting[i] == kGrid && place.modes > 0 && length % place.modes != 0) wanted = place.modes;
    if (length == 1 || length == wanted) continue;
    throw ConfigError(concat(place.path, ".values"),
                      concat("are ", length, " along '", axis_names[i], "', which has ", wanted),
                      "list one for each, or a single one for all");
  }
}

at::Tensor ValuesKind::weights(const ScalerPlace& place) const {
  check_lengths(place);
  const at::Tensor list = at::tensor(values, at::kDouble);
  return shape.empty() ? list : list.reshape(shape);
}

}  // namespace aifs::train
