// SPDX-License-Identifier: Apache-2.0
// A file of loss cases: its tensors, variables and scalers. Files with one grid describe scalers by
// their options; files with several keep inputs and finished scalers under the name of the grid.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "app/conformance/case_file.h"
#include "data/variables.h"
#include "graph/graph.h"
#include "train/loss_term.h"

namespace aifs::conformance {

struct LossFile {
  const Json& json;
  SafetensorsFile tensors;
  data::VariableTable variables;

  explicit LossFile(const CaseFile& file);

  // Whether scalers are given by options.
  bool has_scaler_options() const { return json.contains("scalers"); }
};

// The part of a file that a case looks at: the grid it is on ("input" where there is only one).
struct LossGrid {
  const LossFile& file;
  std::string name;

  at::Tensor read(const std::string& tensor, at::ScalarType dtype) const;
  bool contains(const std::string& tensor) const;
  // The nodes of the grid with their coordinates.
  graph::NodeSet nodes() const;
};

std::vector<std::string> texts(const Json& json);

// A scaler computed from its options (NaN mask: that of the batch), or the stored one.
train::Scaler make_scaler(const LossGrid& grid, const std::string& name, at::ScalarType dtype);

// The scalers of a list in which "*" stands for all of the file and "!name" leaves one out.
std::vector<std::string> selected_scalers(const LossFile& file, const Json& list);

}  // namespace aifs::conformance
