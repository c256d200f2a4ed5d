// SPDX-License-Identifier: Apache-2.0
#include "anemoi/import_scalers.h"

#include <algorithm>
#include <map>

#include "core/check.h"
#include "core/join.h"

namespace aifs::anemoi {

namespace {

// Weights that depend on pressure levels, by class.
const std::map<std::string, std::string>& level_kinds() {
  static const std::map<std::string, std::string> kinds{
      {"ReluVariableLevelScaler", "relu"},
      {"LinearVariableLevelScaler", "linear"},
      {"PolynomialVariableLevelScaler", "polynomial"},
      {"NoVariableLevelScaler", "none"}};
  return kinds;
}

const std::map<std::string, std::string>& scaler_kinds() {
  static const std::map<std::string, std::string> kinds{
      {"GeneralVariableLossScaler", "general_variable"},
      {"VariableMaskingLossScaler", "variable_mask"},
      {"NaNMaskScaler", "nan_mask_weights"},
      {"StdevTendencyScaler", "stdev_tendency"},
      {"VarTendencyScaler", "var_tendency"},
      {"GraphNodeAttributeScaler", "node_weights"},
      {"ReweightedGraphNodeAttributeScaler", "node_weights"},
      {"TimeStepScaler", "time_steps"},
      {"UniformTimeStepScaler", "time_steps"},
      {"LeadTimeDecayScaler", "lead_time_decay"},
      {"SpectralDimensionScaler", "spectral"}};
  return kinds;
}

// Variables of a group, by the names of their parameters.
std::vector<std::string> parameters_of(const Translation& t, const Place& scaler) {
  const Place groups =
      t.of_all_datasets(t.root["training"]["variable_groups"], "groups of the first are for all");
  const Place name = scaler["group"];
  const Place group = groups[name.text("pl")];
  if (!group) {
    name.not_honoured("is no group of variables: its parameters must be named");
    return {};
  }
  if (!group.is_object()) return group.texts();
  for (const auto& [key, condition] : group.members()) {
    if (key != "param" && condition)
      condition.not_honoured(
          "groups are lists of parameters: attributes of variables do not count");
  }
  return group["param"].texts();
}

void import_levels(const Translation& t, const Place& scaler, const Section& loss) {
  const Section level = loss["level"];
  level.set("kind", level_kinds().at(scaler.class_name()), scaler["_target_"]);
  const Place intercept = scaler["y_intercept"], slope = scaler["slope"];
  level.set("y_intercept", intercept.number(0.2), intercept);
  level.set("slope", slope.number(0.001), slope);
  level.set("parameters", parameters_of(t, scaler), scaler["group"]);
  scaler["name"].no_effect("is a name only");
}

void import_weights(const Place& scaler, const Section& loss) {
  const Place weights = scaler["weights"];
  Json all = Json::object();
  for (const auto& [name, weight] : weights.members())
    if (weight) all[name] = weight.number();
  if (!all.contains("default")) all["default"] = 1.0;
  loss.set("variable_weights", all, weights);
}

// Anemoi's schema, which config_validation turns off, fills in the norm of time steps; the class
// itself has none.
Json scaler_norm(const Translation& t, const Place& scaler) {
  const Place norm = scaler["norm"];
  const bool is_filled_in = t.root["config_validation"].boolean(true);
  if (!norm.is_given() && is_filled_in && scaler.class_name() == "TimeStepScaler")
    return "unit-sum";
  if (!norm) return "none";
  if (norm.text() == "l1") return "unit-sum";
  return norm.text();
}

void import_nodes(Translation& t, const Place& scaler, const Section& out, bool is_named) {
  const Place attribute = scaler["nodes_attribute_name"], inverse = scaler["inverse"];
  const std::string name = attribute.text("area_weight");
  out.set("node_attribute", name, attribute);
  if (!is_named) out.set("node_norm", scaler_norm(t, scaler), scaler["norm"]);
  if (inverse.boolean(false)) out.set("node_inverse", true, inverse);
  t.node_attributes.push_back(name);
  scaler["nodes_name"].no_effect("the data nodes are weighed");
  if (t.section("model").find("output_mask"))
    scaler["apply_output_mask"].expect(true, "node weights are 0 outside model.output_mask");
  else
    scaler["apply_output_mask"].no_effect("there is no output mask");
  const Place mask = scaler["scaling_mask_attribute_name"];
  if (scaler.class_name() != "ReweightedGraphNodeAttributeScaler") return;
  const Place share = scaler["weight_frac_of_total"];
  out.set("node_mask", mask.text(), mask);
  out.set("node_mask_share", share.number(), share);
  t.node_attributes.push_back(mask.text());
}

void import_times(const Translation& t, const Place& scaler, const Section& out) {
  if (scaler.class_name() != "TimeStepScaler") return;
  const std::vector<double> weights = scaler["weights"].numbers();
  const Json* times = t.section("data").find("multistep_output");
  if (!times || *times == Json(weights.size()))
    out.set("time_weights", weights, scaler["weights"]);
  else
    scaler["weights"].not_honoured("there must be one for each output time");
}

void import_lead_times(const Translation& t, const Place& scaler, const Section& out) {
  const Section lead = out["lead_time"];
  const Place kind = scaler["decay_type"], decay = scaler["decay_factor"],
              most = scaler["max_lead_time"], inverse = scaler["inverse"],
              hours = scaler["output_lead_times"];
  lead.set("kind", kind.text("linear"), kind);
  lead.set("decay", decay.number(), decay);
  lead.set("max_lead_time_hours", most.number(), most);
  lead.set("inverse", inverse.boolean(false), inverse);
  if (t.is_whole)
    hours.no_effect("follows from data.timestep");
  else
    lead.set("hours", hours.numbers(), hours);
}

void import_spectral(const Place& scaler, const Section& out, bool is_named) {
  if (is_named) {
    out.set("modes", scaler["n_spectral_modes"].integer(0), scaler["n_spectral_modes"]);
    out.set("repeats", scaler["spectral_dims"].integer(1), scaler["spectral_dims"]);
    return;
  }
  for (const char* key : {"n_spectral_modes", "spectral_dims"})
    scaler[key].no_effect("follows from the transform");
}

void import_tendency(const Place& scaler, const Section& loss) {
  if (const Place timestep = scaler["timestep"])
    loss["tendency"].set("timestep", timestep.text(), timestep);
  // Anemoi leaves the first column out: a test for an index takes 0 for none.
  loss["tendency"].set("skip_first_column", true, scaler);
}

void import_scaler(Translation& t, const Place& scaler, const UsedScaler& used,
                   const Section& loss) {
  const std::string& kind = used.kind;
  const Section out = used.is_named ? loss["named_scalers"][used.ours] : loss;
  const Json norm = scaler_norm(t, scaler);
  if (used.is_named) {
    out.set("kind", kind, scaler["_target_"]);
    if (kind == "nan_mask_weights")
      scaler["norm"].expect(nullptr, "the mask of a batch is not normalised");
    else if (norm != Json("none"))
      out.set("norm", norm, scaler["norm"]);
  }
  if (kind == "pressure_level") import_levels(t, scaler, out);
  if (kind == "general_variable") import_weights(scaler, out);
  if (kind == "node_weights") import_nodes(t, scaler, out, used.is_named);
  if (kind == "time_steps") import_times(t, scaler, out);
  if (kind == "lead_time_decay") import_lead_times(t, scaler, out);
  if (kind == "spectral") import_spectral(scaler, out, used.is_named);
  if (kind == "stdev_tendency" || kind == "var_tendency") import_tendency(scaler, out);
  if (kind == "variable_mask") {
    out.set("masked_variables", scaler["variables"].texts(), scaler["variables"]);
    out.set("mask_inverse", scaler["invert"].boolean(false), scaler["invert"]);
  }
  if (kind == "nan_mask_weights")
    scaler["use_processors_tendencies"].expect(false, "is what states have");
}

}  // namespace

std::string scaler_kind(const Place& definition) {
  if (!definition) return "";
  const std::string name = definition.class_name();
  if (level_kinds().contains(name)) return "pressure_level";
  const auto found = scaler_kinds().find(name);
  return found == scaler_kinds().end() ? "" : found->second;
}

bool is_kind_name(const std::string& name) {
  if (name == "pressure_level") return true;
  return std::any_of(scaler_kinds().begin(), scaler_kinds().end(),
                     [&](const auto& entry) { return entry.second == name; });
}

bool needs_name(const Translation& t, const Place& scaler, const std::string& kind) {
  const std::string norm = scaler_norm(t, scaler).get<std::string>();
  if (kind == "node_weights") return scaler["inverse"].boolean(false);
  if (kind == "lead_time_decay") return norm == "unit-mean";  // weights add up to 1 anyway
  if (kind != "time_steps") return norm != "none";
  return scaler.class_name() == "TimeStepScaler" ? norm != "unit-sum" : norm == "unit-mean";
}

void import_scalers(Translation& t, const Place& definitions, const std::vector<UsedScaler>& used,
                    const Section& loss) {
  for (const auto& [name, scaler] : definitions.members()) {
    const auto found = std::find_if(
        used.begin(), used.end(), [&name = name](const UsedScaler& u) { return u.theirs == name; });
    if (found == used.end())
      scaler.no_effect("no loss uses it");
    else
      import_scaler(t, scaler, *found, loss);
  }
  const Place groups = t.root["training"]["variable_groups"];
  for (const std::string& dataset : t.datasets) {
    for (const auto& [name, group] : t.of_dataset(groups, dataset).members())
      group.leave(name == "default" ? "is a name in logs" : "no scaler uses it");
  }
}

}  // namespace aifs::anemoi
