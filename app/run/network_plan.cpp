// SPDX-License-Identifier: Apache-2.0
#include "app/run/network_plan.h"

#include <algorithm>
#include <optional>

#include "core/check.h"
#include "core/join.h"

namespace aifs::app {

model::FieldLayout field_layout(const DataParts& data) {
  model::FieldLayout layout;
  layout.times_in = data.window.times_in;
  layout.times_out = data.window.times_out;
  layout.num_inputs = data.variables.num_inputs();
  layout.input_prognostic = data.variables.input_prognostic();
  layout.output_prognostic = data.variables.output_prognostic();
  layout.outputs.names = data.variables.output_names();
  layout.input_names = data.variables.input_names();
  const auto& tendencies = data.tendencies;
  if (const auto found = tendencies.find(data.timestep_s); found != tendencies.end()) {
    for (const int64_t column : data.variables.prognostic_columns())
      layout.stdev_tendency.push_back(found->second.stdev[static_cast<size_t>(column)]);
  }
  for (const int64_t column : data.variables.output_columns()) {
    layout.outputs.mean.push_back(data.statistics.mean[static_cast<size_t>(column)]);
    layout.outputs.stdev.push_back(data.statistics.stdev[static_cast<size_t>(column)]);
  }
  return layout;
}

DataCells::DataCells(const std::vector<DataParts>& datasets) {
  for (const DataParts& data : datasets) {
    const data::DatasetInfo& info = data.training->info();
    names_.push_back(data.name);
    cells_.push_back({info.latitudes_deg, info.longitudes_deg});
    grids_.push_back(info.grids);
  }
}

std::vector<graph::NamedCells> DataCells::named() const {
  std::vector<graph::NamedCells> named;
  for (size_t i = 0; i < names_.size(); ++i)
    named.push_back({names_[i], cells_[i], grids_[i]});
  return named;
}

namespace {

// Takes of a bound what concerns the outputs of a dataset; nothing if it concerns none of them.
std::optional<model::BoundingOptions> bound_of(const model::BoundingOptions& bound,
                                               const std::vector<std::string>& outputs) {
  model::BoundingOptions own = bound;
  own.variables.clear();
  own.thresholds.clear();
  own.normalizer.clear();
  for (size_t i = 0; i < bound.variables.size(); ++i) {
    if (!contains(outputs, bound.variables[i])) continue;
    own.variables.push_back(bound.variables[i]);
    if (i < bound.thresholds.size()) own.thresholds.push_back(bound.thresholds[i]);
    if (i < bound.normalizer.size()) own.normalizer.push_back(bound.normalizer[i]);
  }
  if (own.variables.empty()) return std::nullopt;
  return own;
}

// Gives each of several datasets its bounds. A variable that none of them predicts is an error.
void share_bounds(const std::vector<model::BoundingOptions>& bounds,
                  std::vector<model::DatasetPlan>& plans) {
  for (size_t i = 0; i < bounds.size(); ++i) {
    for (const std::string& name : bounds[i].variables) {
      const auto predicts = [&](const model::DatasetPlan& d) {
        return contains(d.layout.outputs.names, name);
      };
      if (std::any_of(plans.begin(), plans.end(), predicts)) continue;
      throw ConfigError(concat("model.bounding.", i, ".variables"),
                        concat("no dataset has an output '", name, "'"));
    }
    for (model::DatasetPlan& d : plans) {
      const auto own = bound_of(bounds[i], d.layout.outputs.names);
      if (!own) continue;
      const std::string& total = own->total_var;
      if (!total.empty() && !contains(d.layout.outputs.names, total)) {
        throw ConfigError(concat("model.bounding.", i, ".total_var"),
                          concat("dataset '", d.name, "' has no output '", total, "', but has '",
                                 own->variables[0], "'"));
      }
      d.bounding.push_back(*own);
    }
  }
}

}  // namespace

model::NetworkPlan network_plan(const model::ModelOptions& model, const data::DataOptions& options,
                                const std::vector<DataParts>& datasets) {
  model::NetworkPlan plan = model::NetworkPlan::single(model, field_layout(datasets.front()));
  if (options.datasets.empty()) return plan;
  if (!model.residual.truncation_down.empty() || !model.residual.truncation_up.empty()) {
    throw ConfigError("model.residual.truncation_down",
                      "files of matrices are for one grid, and there are several datasets",
                      "name a grid in model.residual.truncation_grid");
  }
  const model::DatasetPlan common = plan.datasets.front();
  plan.datasets.clear();
  plan.node_trainable.erase(common.name);
  for (size_t i = 0; i < datasets.size(); ++i) {
    model::DatasetPlan d = common;
    const std::string& encoder = options.datasets[i].second.encoder;
    d.name = d.decoder_name = datasets[i].name;
    d.encoder_name = encoder.empty() ? d.name : encoder;
    d.layout = field_layout(datasets[i]);
    d.stdev_tendency = d.layout.stdev_tendency;
    d.bounding.clear();
    plan.node_trainable[d.name] = model.trainable_parameters.data;
    for (const model::DatasetPlan& other : plan.datasets) {
      if (other.encoder_name != d.encoder_name || other.layout.num_inputs == d.layout.num_inputs)
        continue;
      throw ConfigError(
          concat("data.datasets.", d.name, ".encoder"),
          concat("'", d.encoder_name, "' is of ", other.layout.num_inputs, " inputs, those of '",
                 other.name, "', and here are ", d.layout.num_inputs),
          "leave it out: each dataset has an encoder of its own");
    }
    plan.datasets.push_back(std::move(d));
  }
  share_bounds(model.bounding, plan.datasets);
  plan.validate();
  return plan;
}

}  // namespace aifs::app
