// SPDX-License-Identifier: Apache-2.0
#include "train/loss/loss_options.h"

#include <algorithm>

#include "core/check.h"
#include "core/time.h"

namespace aifs::train {

namespace {

// The values that names in a list stand for. Throws ConfigError for a name that is not known or
// stands there twice.
template <class E>
std::vector<E> named(const std::vector<std::string>& names, const std::string& path,
                     const char* what) {
  std::vector<E> values;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto& table = EnumNames<E>::table;
    const auto found = std::find_if(table.begin(), table.end(),
                                    [&](const auto& entry) { return names[i] == entry.second; });
    if (found == table.end()) {
      throw ConfigError(concat(path, ".", i), concat("no ", what, " '", names[i], "'"),
                        nearest_names(names[i], enum_names<E>()));
    }
    if (std::find(values.begin(), values.end(), found->first) != values.end()) {
      throw ConfigError(concat(path, ".", i), concat("'", names[i], "' is named twice"));
    }
    values.push_back(found->first);
  }
  return values;
}

bool contains(const std::vector<ScalerKind>& kinds, ScalerKind kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

void check_outputs(const std::vector<std::string>& wanted, const std::vector<std::string>& outputs,
                   const std::string& path) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::find(outputs.begin(), outputs.end(), wanted[i]) == outputs.end()) {
      throw ConfigError(concat(path, ".", i), concat("'", wanted[i], "' is not predicted"),
                        nearest_names(wanted[i], outputs));
    }
  }
}

}  // namespace

void TendencyScalerOptions::bind(config::Binder& b) {
  b.text("timestep", timestep,
         {"time difference whose tendency statistics are used; empty takes data.timestep"});
  b.boolean("skip_first_column", skip_first_column,
            {"leave the variable in dataset column 0 at weight 1, as Anemoi's release does"});
}

void ScalesOptions::bind(config::Binder& b) {
  b.number_list(
      "weights", weights, {.min = 0.0},
      {"weight of each scale from coarse to fine, one for each file or num_scales + 1 of them; "
       "empty: the loss is not split into scales"});
  b.text_list("files", files,
              {"smoothers from coarse to fine, sparse matrices of scipy.sparse.save_npz; an empty "
               "name leaves the fields as they are. Instead of num_scales"},
              config::TextKind::kPath);
  b.integer("num_scales", num_scales, {.min = 0, .max = 32},
            {"smoothed scales besides the finest one"});
  b.integer("base_neighbours", base_neighbours, {.min = 1, .max = 4096},
            {"nearest nodes of the finest smoother"});
  b.number("base_sigma", base_sigma, {.min = 1e-9}, {"width of the finest smoother", "rad"});
  b.number("scale_factor", scale_factor, {.min = 1.0},
           {"by how much neighbours and width grow from scale to scale"});
}

void ScalesOptions::validate(const std::string& path) const {
  if (!files.empty() && num_scales > 0) {
    throw ConfigError(path + ".files", "and num_scales are two ways to say the same",
                      "leave one of them out");
  }
  const size_t wanted = !files.empty()                       ? files.size()
                        : weights.empty() && num_scales == 0 ? 0
                                                             : static_cast<size_t>(num_scales) + 1;
  if (weights.size() != wanted) {
    throw ConfigError(path + ".weights",
                      concat("has ", weights.size(), " values, ", files.size(),
                             " files and num_scales = ", num_scales, " need ", wanted));
  }
}

void LossTermOptions::bind(config::Binder& b) {
  kind.bind(b, "kind", {"error or score, of normalised values"});
  b.number("weight", weight, {}, {"factor of the loss"});
  b.boolean("ignore_nans", ignore_nans, {"count NaN in prediction or target as no error"});
  b.text_list("variables", variables, {"predicted variables it looks at; empty: all"});
  b.text_list("target_variables", target_variables,
              {"what they are compared with, one each; empty: themselves"});
  b.text_list("scalers", scalers,
              {"weights multiplied onto the errors, in this order: pressure_level, "
               "general_variable, node_weights, time_steps, stdev_tendency, var_tendency, "
               "nan_mask_weights, lead_time_decay, variable_mask, spectral"});
  b.text_list("time_aggregation", time_aggregation,
              {"compare mean, min, max or diff of the output times instead of each; empty: each"});
  b.section("scales", scales, {"a loss of each scale of the fields"});
}

void LossTermOptions::validate(const std::string& path) const {
  const bool waves = kind->is_of_waves();
  const std::vector<ScalerKind> kinds = scaler_kinds(path + ".scalers");
  const ScalerKind wanted = waves ? ScalerKind::kSpectral : ScalerKind::kNodeWeights;
  const ScalerKind other = waves ? ScalerKind::kNodeWeights : ScalerKind::kSpectral;
  if (contains(kinds, other)) {
    throw ConfigError(path + ".scalers",
                      concat("'", enum_name(other), "' is not for ", kind.name()),
                      waves ? "its errors are of waves: use \"spectral\""
                            : "its errors are of nodes: use \"node_weights\"");
  }
  if (!kinds.empty() && !contains(kinds, wanted)) {
    throw ConfigError(path + ".scalers",
                      concat("a loss with scalers needs ", enum_name(wanted), " among them"),
                      "without it the loss would grow with the size of the grid");
  }
  time_aggregates(path + ".time_aggregation");
  if (!target_variables.empty() && target_variables.size() != variables.size()) {
    throw ConfigError(
        path + ".target_variables",
        concat("has ", target_variables.size(), " names for ", variables.size(), " in variables"));
  }
  if (waves && ignore_nans) {
    throw ConfigError(path + ".ignore_nans", "a transform of a field with NaN is not defined");
  }
  kind->validate(path);
}

std::vector<ScalerKind> LossTermOptions::scaler_kinds(const std::string& path) const {
  return named<ScalerKind>(scalers, path, "scaler");
}

std::vector<TimeAggregate> LossTermOptions::time_aggregates(const std::string& path) const {
  return named<TimeAggregate>(time_aggregation, path, "time aggregate");
}

void LossOptions::bind(config::Binder& b) {
  LossTermOptions::bind(b);
  b.list("terms", terms,
         {"several losses, added with their weights; they take the scalers above unless they name "
          "their own. Empty: the one loss above"});
  b.section("level", level, {"weights of pressure levels (scaler pressure_level)"});
  b.number_map("variable_weights", variable_weights, {.min = 0.0},
               {"weight per parameter, and \"default\" (scaler general_variable)"});
  b.text_list("masked_variables", masked_variables,
              {"outputs, or parameters with all levels, that weigh 0 (scaler variable_mask)"});
  b.boolean("mask_inverse", mask_inverse, {"let all others weigh 0 instead"});
  b.text("node_attribute", node_attribute,
         {"attribute of the data nodes that weighs them (scaler node_weights)"});
  b.text("node_mask", node_mask,
         {"attribute that marks nodes which weigh the same and have a fixed share; empty: none"});
  b.number("node_mask_share", node_mask_share, {.min = 1e-9, .max = 1.0 - 1e-9},
           {"their share of the total weight"});
  b.choice("node_norm", node_norm, {"normalisation of the weights of nodes (scaler node_weights)"});
  b.number_list("time_weights", time_weights, {.min = 0.0},
                {"weights of the output times of one step; empty weighs them equally"});
  b.section("lead_time", lead_time, {"weights by lead time (scaler lead_time_decay)"});
  b.section("tendency", tendency, {"weights from tendency statistics"});
}

void LossOptions::validate(const std::string& path) const {
  if (!time_weights.empty() &&
      std::all_of(time_weights.begin(), time_weights.end(), [](double w) { return w == 0.0; })) {
    throw ConfigError(path + ".time_weights", "are all 0: nothing is left to learn from");
  }
  if (!tendency.timestep.empty()) {
    try {
      parse_duration(tendency.timestep);
    } catch (const Error& error) {
      throw ConfigError(path + ".tendency.timestep", error.what(), error.hint());
    }
  }
  if (!terms.empty()) {
    LossTermOptions own = *this, plain = LossOptions();
    config::refuse_unused(config::fields_of(own), config::fields_of(plain), {"scalers"}, path,
                          "a sum of terms, which have their own");
  }
  const auto all = effective_terms();
  for (size_t i = 0; i < all.size(); ++i)
    all[i].second.validate(terms.empty() ? path : all[i].first);
}

std::vector<std::pair<std::string, LossTermOptions>> LossOptions::effective_terms() const {
  if (terms.empty()) return {{"loss", *this}};
  std::vector<std::pair<std::string, LossTermOptions>> all;
  for (size_t i = 0; i < terms.size(); ++i) {
    all.emplace_back(concat("loss.terms.", i), terms[i]);
    if (terms[i].scalers.empty()) all.back().second.scalers = scalers;
  }
  return all;
}

void LossOptions::check(int64_t members, int64_t times_out) const {
  const auto require_reader = [&](bool is_set, const char* key, ScalerKind scaler) {
    if (!is_set) return;
    for (const auto& [path, term] : effective_terms()) {
      if (contains(term.scaler_kinds(path + ".scalers"), scaler)) return;
    }
    throw ConfigError(concat("loss.", key),
                      concat("is read by the scaler '", enum_name(scaler), "', which no loss has"),
                      "add it to loss.scalers");
  };
  require_reader(!masked_variables.empty(), "masked_variables", ScalerKind::kVariableMask);
  require_reader(!time_weights.empty(), "time_weights", ScalerKind::kTimeSteps);
  require_reader(!node_mask.empty(), "node_mask", ScalerKind::kNodeWeights);
  if (!time_weights.empty() && static_cast<int64_t>(time_weights.size()) != times_out) {
    throw ConfigError(
        "loss.time_weights",
        concat("has ", time_weights.size(), " values for data.multistep_output = ", times_out));
  }
  for (const auto& [path, term] : effective_terms()) {
    if (term.kind->compares_members() && members < 2) {
      throw ConfigError(path + ".kind",
                        concat("'", term.kind.name(), "' compares the members of an ensemble, ",
                               "the network predicts ", members),
                        "choose a loss of single forecasts, or a network with members");
    }
    if (!term.time_aggregation.empty() && times_out < 2) {
      throw ConfigError(path + ".time_aggregation",
                        "needs several output times, data.multistep_output is 1");
    }
  }
}

void LossOptions::check_names(const data::VariableTable& table) const {
  const std::vector<std::string> outputs = table.output_names();
  for (const auto& [path, term] : effective_terms()) {
    check_outputs(term.variables, outputs, path + ".variables");
    check_outputs(term.target_variables, outputs, path + ".target_variables");
    if (contains(term.scaler_kinds(path + ".scalers"), ScalerKind::kGeneralVariable)) {
      train::variable_weights(outputs, variable_weights);
    }
  }
  train::variable_mask(outputs, masked_variables, mask_inverse);
}

}  // namespace aifs::train
