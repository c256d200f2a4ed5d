// SPDX-License-Identifier: Apache-2.0
// Which variable plays which role, and the numberings that follow from it (Anemoi's data_indices).
//
// Three numberings exist, all in dataset order:
//   data          columns of the dataset (all V variables)
//   model input   forcing and prognostic variables, renumbered
//   model output  prognostic and diagnostic variables, renumbered
// A variable is prognostic if it is named neither forcing nor diagnostic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config.h"

namespace aifs::data {

enum class Role { kForcing, kPrognostic, kDiagnostic };

struct RoleOptions {
  std::vector<std::string> forcing;     // read as input, never predicted
  std::vector<std::string> diagnostic;  // predicted, never read as input

  void bind(config::Binder& b);
};

class VariableTable {
 public:
  VariableTable() = default;
  // Throws ConfigError (path "data.forcing" or "data.diagnostic") for names that are not in
  // `variables`, given twice or in both lists, and if nothing is left to predict.
  VariableTable(std::vector<std::string> variables, const RoleOptions& roles);

  const std::vector<std::string>& names() const { return names_; }
  Role role(int64_t column) const { return roles_[static_cast<size_t>(column)]; }
  int64_t num_variables() const { return static_cast<int64_t>(names_.size()); }
  int64_t num_inputs() const { return static_cast<int64_t>(input_columns_.size()); }
  int64_t num_outputs() const { return static_cast<int64_t>(output_columns_.size()); }
  int64_t num_prognostic() const { return static_cast<int64_t>(input_prognostic_.size()); }

  // Data columns of the model inputs and of the model outputs.
  const std::vector<int64_t>& input_columns() const { return input_columns_; }
  const std::vector<int64_t>& output_columns() const { return output_columns_; }
  // Positions of the prognostic variables among model inputs and outputs; the k-th of one list is
  // the k-th of the other.
  const std::vector<int64_t>& input_prognostic() const { return input_prognostic_; }
  const std::vector<int64_t>& output_prognostic() const { return output_prognostic_; }
  // Positions of the forcings among the model inputs, and their data columns.
  const std::vector<int64_t>& input_forcing() const { return input_forcing_; }
  const std::vector<int64_t>& forcing_columns() const { return forcing_columns_; }
  // Data columns of the prognostic variables.
  const std::vector<int64_t>& prognostic_columns() const { return prognostic_columns_; }

  std::vector<std::string> input_names() const;
  std::vector<std::string> output_names() const;
  // Position of a name among the model outputs, or -1.
  int64_t find_output(const std::string& name) const;

 private:
  std::vector<std::string> names_;
  std::vector<Role> roles_;
  std::vector<int64_t> input_columns_, output_columns_;
  std::vector<int64_t> input_prognostic_, output_prognostic_, input_forcing_;
  std::vector<int64_t> forcing_columns_, prognostic_columns_;
};

// "t_850" -> parameter "t", level 850; "2t" -> "2t", no level (-1). The suffix must be digits only.
struct VariableName {
  std::string parameter;
  int64_t level = -1;
};
VariableName split_variable_name(const std::string& name);

}  // namespace aifs::data
