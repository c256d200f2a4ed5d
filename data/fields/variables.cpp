// SPDX-License-Identifier: Apache-2.0
#include "data/fields/variables.h"

#include <algorithm>

#include "core/check.h"

namespace aifs::data {

namespace {

void assign_role(const std::vector<std::string>& names, const std::vector<std::string>& wanted,
                 Role role, const char* path, std::vector<Role>& roles) {
  for (const std::string& name : wanted) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      throw ConfigError(path, concat("the dataset has no variable '", name, "'"),
                        nearest_names(name, names));
    }
    Role& entry = roles[static_cast<size_t>(found - names.begin())];
    if (entry != Role::kPrognostic) {
      throw ConfigError(path, concat("variable '", name, "' already has a role"),
                        "a variable is forcing, diagnostic, or (by default) prognostic");
    }
    entry = role;
  }
}

}  // namespace

void RoleOptions::bind(config::Binder& b) {
  b.text_list("forcing", forcing, {"variables that are read as input and never predicted"});
  b.text_list("diagnostic", diagnostic, {"variables that are predicted and never read as input"});
}

VariableTable::VariableTable(std::vector<std::string> variables, const RoleOptions& roles)
    : names_(std::move(variables)), roles_(names_.size(), Role::kPrognostic) {
  assign_role(names_, roles.forcing, Role::kForcing, "data.forcing", roles_);
  assign_role(names_, roles.diagnostic, Role::kDiagnostic, "data.diagnostic", roles_);
  for (int64_t column = 0; column < num_variables(); ++column) {
    const Role r = role(column);
    if (r == Role::kForcing) {
      input_forcing_.push_back(num_inputs());
      forcing_columns_.push_back(column);
    }
    if (r == Role::kPrognostic) {
      input_prognostic_.push_back(num_inputs());
      output_prognostic_.push_back(num_outputs());
      prognostic_columns_.push_back(column);
    }
    if (r != Role::kDiagnostic) input_columns_.push_back(column);
    if (r != Role::kForcing) output_columns_.push_back(column);
  }
  if (output_columns_.empty()) {
    throw ConfigError("data.forcing", "every variable is a forcing, nothing is left to predict");
  }
}

std::vector<std::string> VariableTable::input_names() const {
  std::vector<std::string> result;
  for (const int64_t column : input_columns_)
    result.push_back(names_[static_cast<size_t>(column)]);
  return result;
}

std::vector<std::string> VariableTable::output_names() const {
  std::vector<std::string> result;
  for (const int64_t column : output_columns_)
    result.push_back(names_[static_cast<size_t>(column)]);
  return result;
}

int64_t VariableTable::find_output(const std::string& name) const {
  for (size_t i = 0; i < output_columns_.size(); ++i) {
    if (names_[static_cast<size_t>(output_columns_[i])] == name) return static_cast<int64_t>(i);
  }
  return -1;
}

VariableName split_variable_name(const std::string& name) {
  const size_t bar = name.rfind('_');
  if (bar == std::string::npos || bar == 0 || bar + 1 == name.size() || name.size() - bar > 10 ||
      name.find_first_not_of("0123456789", bar + 1) != std::string::npos) {
    return {name, -1};
  }
  return {name.substr(0, bar), std::stoll(name.substr(bar + 1))};
}

}  // namespace aifs::data
