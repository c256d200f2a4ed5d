// SPDX-License-Identifier: Apache-2.0
#include "app/run/network_plan.h"

#include <algorithm>
#include <optional>

#include "app/run/named_parts.h"
#include "core/check.h"
#include "core/join.h"
#include "model/network/noise_matrix.h"

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

namespace {

// The first member of a variable at the first date of a dataset.
std::vector<float> first_field(const data::Dataset& dataset, const std::string& variable,
                               const std::string& path) {
  const data::DatasetInfo& info = dataset.info();
  const auto found = std::find(info.variables.begin(), info.variables.end(), variable);
  if (found == info.variables.end()) {
    throw ConfigError(path, concat("'", info.name, "' has no variable '", variable, "'"),
                      nearest_names(variable, info.variables));
  }
  const auto cells = static_cast<size_t>(info.num_nodes());
  const int64_t column = found - info.variables.begin();
  std::vector<float> field(static_cast<size_t>(info.ensemble_size) * cells);
  data::ReadScratch scratch;
  data::read_fields(dataset, 0, {0, info.num_nodes()}, {&column, 1}, scratch, field.data());
  field.resize(cells);
  return field;
}

}  // namespace

DataCells::DataCells(const std::vector<DataParts>& datasets) {
  for (const DataParts& data : datasets) {
    const data::DatasetInfo& info = data.training->info();
    names_.push_back(data.name);
    cells_.push_back({info.latitudes_deg, info.longitudes_deg});
    grids_.push_back(info.grids);
    fields_.push_back([open = data.open_all_dates, training = data.training](
                          const std::string& variable, const std::string& path) {
      return first_field(open ? *open() : *training, variable, path);
    });
  }
}

std::vector<graph::NamedCells> DataCells::named() const {
  std::vector<graph::NamedCells> named;
  for (size_t i = 0; i < names_.size(); ++i)
    named.push_back({names_[i], cells_[i], grids_[i], fields_[i]});
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
      const std::vector<std::string>& datasets = bounds[i].datasets;
      if (!datasets.empty() && !contains(datasets, d.name)) continue;
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

// Files of matrices are for the grid of one dataset.
void check_matrices(const std::vector<model::DatasetPlan>& plans) {
  const auto uses = [](const model::DatasetPlan& d) {
    return d.paths.residual == "model.residual" && !d.residual.truncation_down.empty();
  };
  if (std::count_if(plans.begin(), plans.end(), uses) < 2) return;
  throw ConfigError("model.residual.truncation_down",
                    "files of matrices are for one grid, and there are several datasets",
                    "name a grid in model.residual.truncation_grid, or give each dataset its "
                    "residual in model.residuals");
}

// Datasets that share an encoder have as many inputs.
void check_encoder(const model::DatasetPlan& d, const std::vector<model::DatasetPlan>& before) {
  for (const model::DatasetPlan& other : before) {
    if (other.encoder_name != d.encoder_name || other.layout.num_inputs == d.layout.num_inputs)
      continue;
    throw ConfigError(
        concat("data.datasets.", d.name, ".encoder"),
        concat("'", d.encoder_name, "' is of ", other.layout.num_inputs, " inputs, those of '",
               other.name, "', and here are ", d.layout.num_inputs),
        "leave it out: each dataset has an encoder of its own");
  }
}

// Gives each of the datasets with names its part of the plan.
void divide(const model::ModelOptions& model, const data::DataOptions& options,
            const std::vector<DataParts>& datasets, model::NetworkPlan& plan) {
  const model::TrainableOptions& trainable = model.trainable_parameters;
  plan.node_trainable.clear();
  for (const std::string& mesh : plan.meshes)
    plan.node_trainable[mesh] = trainable.of_mesh(mesh);
  plan.datasets.clear();
  for (size_t i = 0; i < datasets.size(); ++i) {
    const NamedParts parts = parts_of(model, options, i);
    model::ModelOptions own = model;
    own.encoder = *parts.encoder;
    own.decoder = *parts.decoder;
    model::DatasetPlan d{.name = datasets[i].name,
                         .encoder_name = parts.encoder_name,
                         .decoder_name = parts.decoder_name,
                         .encoder = *parts.encoder,
                         .decoder = *parts.decoder,
                         .encoder_trainable = own.encoder_features(),
                         .decoder_trainable = own.decoder_features(),
                         .layout = field_layout(datasets[i]),
                         .residual = *parts.residual,
                         .bounding = {},
                         .paths = parts.paths};
    d.stdev_tendency = d.layout.stdev_tendency;
    plan.node_trainable[d.name] = trainable.of_data(d.name);
    check_encoder(d, plan.datasets);
    plan.datasets.push_back(std::move(d));
  }
  check_matrices(plan.datasets);
  share_bounds(model.bounding, plan.datasets);
}

}  // namespace

model::NetworkPlan network_plan(const model::ModelOptions& model, const data::DataOptions& options,
                                const std::vector<DataParts>& datasets, const graph::Graph* graph) {
  check_named_parts(model, options);
  model::NetworkPlan plan = model::NetworkPlan::single(model, field_layout(datasets.front()));
  if (!options.datasets.empty()) {
    divide(model, options, datasets, plan);
    plan.validate();
  }
  if (graph)
    plan.noise_projection = model::noise_matrix(model.ensemble, *graph, plan.meshes.front());
  return plan;
}

}  // namespace aifs::app
