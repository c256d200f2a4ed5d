// SPDX-License-Identifier: Apache-2.0
#include "conformance/loss_file.h"

#include <ATen/ATen.h>

#include <map>

#include "conformance/report.h"
#include "conformance/tensors.h"

namespace aifs::conformance {

const Json* LossFile::scaler_options(const std::string& name) const {
  if (!json.contains("scalers") || !json["scalers"].contains(name)) return nullptr;
  const Json& scaler = json["scalers"][name];
  return scaler.contains("options") ? &scaler["options"] : &scaler;
}

at::Tensor LossGrid::read(const std::string& tensor, at::ScalarType dtype) const {
  return read_tensor(file.tensors, prefix + tensor, dtype);
}

bool LossGrid::contains(const std::string& tensor) const {
  return file.tensors.contains(prefix + tensor);
}

graph::NodeSet LossGrid::nodes() const {
  const char* tensor = contains("latlon_rad") ? "latlon_rad" : "node_latlon_rad";
  const at::Tensor columns = read(tensor, at::kFloat).t().contiguous();
  const float* values = columns.const_data_ptr<float>();
  graph::NodeSet nodes;
  nodes.name = "data";
  nodes.lat_rad.assign(values, values + columns.size(1));
  nodes.lon_rad.assign(values + columns.size(1), values + 2 * columns.size(1));
  return nodes;
}

train::Axis axis_named(const std::string& name) {
  static const std::map<std::string, train::Axis> axes{{"batch", train::kBatch},
                                                       {"time", train::kTime},
                                                       {"ensemble", train::kEnsemble},
                                                       {"grid", train::kGrid},
                                                       {"variable", train::kVariable}};
  const auto found = axes.find(name);
  if (found == axes.end()) throw NotSupported("dimension " + name);
  return found->second;
}

AxisLengths LossGrid::lengths() const {
  AxisLengths lengths{.variable = file.variables.num_outputs()};
  for (const char* fields : {"batch", "target", "pred"}) {
    if (!contains(fields)) continue;
    const std::vector<int64_t>& shape = file.tensors.at(prefix + fields).shape;
    lengths.grid = shape.at(train::kGrid);
    lengths.time = file.json.value("times_out", shape.at(train::kTime));
    return lengths;
  }
  if (!contains("data_raw")) return lengths;
  lengths.grid = file.tensors.at(prefix + "data_raw").shape.at(2);  // times, members, nodes, ...
  lengths.time = file.json.value("times_out", int64_t{1});
  return lengths;
}

train::Axis axis_of_scaler(const std::string& name, int64_t length, const AxisLengths& lengths) {
  const bool spectral = name.starts_with("spectral");
  const train::Axis named = spectral || name.starts_with("node") ? train::kGrid
                            : name.starts_with("time") || name.starts_with("lead")
                                ? train::kTime
                                : train::kVariable;
  const auto length_of = [&](train::Axis axis) {
    return axis == train::kGrid   ? lengths.grid
           : axis == train::kTime ? lengths.time
                                  : lengths.variable;
  };
  if (spectral || length == 1 || length == length_of(named)) return named;
  for (const train::Axis axis : {train::kGrid, train::kVariable, train::kTime}) {
    if (length == length_of(axis)) return axis;
  }
  return train::kGrid;
}

}  // namespace aifs::conformance
