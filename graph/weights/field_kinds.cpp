// SPDX-License-Identifier: Apache-2.0
#include "graph/weights/field_kinds.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace aifs::graph {

namespace {

void bind_variable(config::Binder& b, std::string& variable) {
  b.text("variable", variable, {"variable of the dataset, whose first date is read"});
}

void require_variable(const std::string& variable, const std::string& path) {
  if (variable.empty()) throw ConfigError(path + ".variable", "names no variable of the dataset");
}

// One value a cell.
std::vector<float> field_of(const MeshNodes& nodes, const std::string& variable,
                            const std::string& path) {
  if (!nodes.field) {
    throw ConfigError(
        path,
        concat("nodes '", nodes.set.name, "' are no cells of a dataset whose fields are at hand"),
        "use it for the cells of a dataset, or name a file of the graph in graph.file");
  }
  std::vector<float> values = nodes.field(variable, path + ".variable");
  AIFS_CHECK(static_cast<int64_t>(values.size()) == nodes.set.num_nodes(), "a field of ",
             values.size(), " cells, and ", nodes.set.num_nodes(), " nodes");
  return values;
}

}  // namespace

void VariableWeightKind::bind(config::Binder& b) {
  bind_variable(b, variable);
  WeightKind::bind(b);
}

void VariableWeightKind::validate(const std::string& path) const {
  require_variable(variable, path);
}

std::vector<double> VariableWeightKind::raw(const MeshNodes& nodes, int64_t,
                                            const std::string& path) const {
  const std::vector<float> values = field_of(nodes, variable, path);
  const auto missing =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (missing != values.end()) {
    throw ConfigError(path + ".variable",
                      concat("'", variable, "' is missing in cell ", missing - values.begin(),
                             " at the first date of the dataset"),
                      "a mask of cells where it is not is of kind \"nonmissing\"");
  }
  return {values.begin(), values.end()};
}

void VariableMaskKind::bind(config::Binder& b) {
  bind_variable(b, variable);
}

void VariableMaskKind::validate(const std::string& path) const {
  require_variable(variable, path);
}

std::vector<double> VariableMaskKind::raw(const MeshNodes& nodes, int64_t,
                                          const std::string& path) const {
  const std::vector<float> values = field_of(nodes, variable, path);
  std::vector<double> mask(values.size());
  std::transform(values.begin(), values.end(), mask.begin(),
                 [&](float value) { return holds(value) ? 1.0 : 0.0; });
  return mask;
}

bool NonmissingMaskKind::holds(float value) const {
  return !std::isnan(value);
}

bool NonzeroMaskKind::holds(float value) const {
  return value != 0.0F;
}

}  // namespace aifs::graph
