// SPDX-License-Identifier: Apache-2.0
// Where a loss finds its variables, scalers and grid. Files of losses on one grid describe scalers
// by their options; those on several grids, and model cases, keep finished scalers.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "conformance/case_file.h"
#include "data/fields/variables.h"
#include "graph/base/graph.h"
#include "train/loss/loss_term.h"

namespace aifs::conformance {

struct LossFile {
  const Json& json;
  const SafetensorsFile& tensors;
  data::VariableTable variables;

  // True if scalers are given by options.
  bool has_scaler_options() const { return json.contains("scalers"); }
  // The class of a scaler and its options; null: there is no such scaler.
  const Json* scaler_options(const std::string& name) const;
};

// Lengths of a prediction.
struct AxisLengths {
  int64_t time = 0, grid = 0, variable = 0;
};

// The part of a file that a loss looks at.
struct LossGrid {
  const LossFile& file;
  std::string prefix;  // of its tensors: "<grid>/"

  at::Tensor read(const std::string& tensor, at::ScalarType dtype) const;
  bool contains(const std::string& tensor) const;
  // The nodes of the grid with their coordinates.
  graph::NodeSet nodes() const;
  // Returns the lengths of the outputs; times and nodes 0 if the file has no fields.
  AxisLengths lengths() const;
};

// The axis of a stored scaler of one dimension, whose name may tell ("node_weights", "time_steps",
// "spectral_modes"; else it is of variables) and whose length must fit; a length that is that of no
// axis is a number of spectral coefficients.
train::Axis axis_of_scaler(const std::string& name, int64_t length, const AxisLengths& lengths);

// A dimension by its name in Anemoi. Throws NotSupported.
train::Axis axis_named(const std::string& name);

}  // namespace aifs::conformance
