// SPDX-License-Identifier: Apache-2.0
// Section "training", the loss: its terms and the scalers that weigh them.
#include <algorithm>
#include <map>

#include "anemoi/import_scalers.h"
#include "anemoi/loss_section.h"
#include "anemoi/sections.h"
#include "core/check.h"
#include "core/join.h"

namespace aifs::anemoi {

namespace {

// Collects what wrappers around a loss ask of it.
struct Around {
  double weight = 1.0;
  Place scalers;          // of the nearest wrapper that names some
  bool is_alone = false;  // in a wrapper of one loss, where an empty list means those around
  Json scales;            // of a wrapper of scales
  std::vector<std::string> time_aggregation;
};

class LossReader {
 public:
  LossReader(const Translation& t, const Place& definitions, const LossRules& rules)
      : translation_(t), definitions_(definitions), rules_(rules) {
    for (const std::string& name : rules.also)
      scaler(name, definitions[name]);
  }

  void read(const Place& loss, const Around& around);
  const std::vector<Json>& terms() const { return terms_; }
  const std::vector<UsedScaler>& used_scalers() const { return used_; }

 private:
  void combined(const Place& loss, const Around& around);
  void scales(const Place& loss, Around around);
  void aggregates(const Place& loss, Around around);
  void elementary(const Place& loss, const Around& around);
  Json graph_of(const Place& loss) const;
  std::vector<std::string> scalers(const Place& list);
  // The name here of a scaler, or "" if there is none; `place` is for remarks.
  std::string scaler(const std::string& name, const Place& place);

  const Translation& translation_;
  Place definitions_;
  const LossRules& rules_;
  std::vector<Json> terms_;
  std::vector<UsedScaler> used_;
};

// Refuses what the wrappers of Anemoi do: a word of theirs that the loss within does not repeat.
void check_wrapper(const Place& wrapper, const Place& loss) {
  if (wrapper["ignore_nans"].boolean(false) && !loss["ignore_nans"].boolean(false)) {
    throw ConfigError(wrapper["ignore_nans"].path(),
                      "is true of a wrapper and false of the loss in it");
  }
}

void LossReader::combined(const Place& loss, const Around& around) {
  const std::vector<double> weights = loss["loss_weights"].numbers();
  const std::vector<Place> losses = loss["losses"].elements();
  if (!weights.empty() && weights.size() != losses.size()) {
    throw ConfigError(loss["loss_weights"].path(),
                      concat("has ", weights.size(), " values for ", losses.size(), " losses"));
  }
  loss["ignore_nans"].no_effect("losses say so each");
  for (size_t i = 0; i < losses.size(); ++i) {
    Around one = around;
    one.is_alone = false;
    one.weight *= weights.empty() ? 1.0 : weights[i];
    if (loss["scalers"] && losses[i].class_name() != "MultiscaleLossWrapper")
      one.scalers = loss["scalers"];
    read(losses[i], one);
  }
}

// Smoothers from files, or made here.
Json scales_of(const Place& config, const Place& loss, const std::vector<double>& weights) {
  Json scales{{"weights", weights}};
  if (const Place smoothers = config["smoothers"]) {
    Json list = Json::array();
    for (const auto& [name, smoother] : smoothers.members()) {
      list.insert(list.begin(), Json{{"neighbours", smoother["num_nearest_neighbours"].integer()},
                                     {"sigma", smoother["sigma"].number()}});
    }
    scales["smoothers"] = list;
    return scales;
  }
  if (const Place matrices = config["loss_matrices"]) {
    const Place own = config["loss_matrices_path"];
    const std::string folder = (own ? own : loss["loss_matrices_path"]).text("");
    Json files = Json::array();
    for (const Place& matrix : matrices.elements()) {
      const std::string name = matrix.text("");
      matrix.mark();
      files.push_back(name.empty() || folder.empty() ? name : concat(folder, "/", name));
    }
    scales["files"] = files;
    return scales;
  }
  static const std::map<std::string, std::string> keys{
      {"num_scales", "num_scales"},
      {"base_num_nearest_neighbours", "base_neighbours"},
      {"base_sigma", "base_sigma"},
      {"scale_factor", "scale_factor"}};
  for (const auto& [theirs, ours] : keys) {
    if (config[theirs]) scales[ours] = config[theirs].whole();
  }
  return scales;
}

void LossReader::scales(const Place& loss, Around around) {
  const Place config = loss["multiscale_config"] ? loss["multiscale_config"] : loss;
  const std::vector<double> weights = loss["weights"].numbers();
  const bool is_split = config["loss_matrices"] || config["num_scales"] || config["smoothers"];
  loss["loss_matrices_path"].mark();
  if (is_split) {
    if (!around.scales.is_null()) loss.not_honoured("scales of scales are not taken");
    around.scales = scales_of(config, loss, weights);
    if (!around.time_aggregation.empty()) around.scales["of_aggregates"] = true;
  } else if (!weights.empty()) {
    if (weights.size() != 1)
      throw ConfigError(loss["weights"].path(), concat("has ", weights.size(), " values, not 1"));
    around.weight *= weights[0];
  }
  for (const char* key : {"sparse_projector_num_chunks", "autocast", "keep_batch_sharded"})
    loss[key].no_effect("how fields are smoothed is up to the program");
  if (loss["scalers"]) around.scalers = loss["scalers"];
  check_wrapper(loss, loss["per_scale_loss"]);
  around.is_alone = true;
  read(loss["per_scale_loss"], around);
}

void LossReader::aggregates(const Place& loss, Around around) {
  check_wrapper(loss, loss["loss_fn"]);
  if (!around.time_aggregation.empty()) loss.not_honoured("aggregates of aggregates are not taken");
  around.is_alone = true;
  around.time_aggregation = loss["time_aggregation_types"].texts();
  if (loss["scalers"]) around.scalers = loss["scalers"];
  read(loss["loss_fn"], around);
}

std::string loss_kind(const std::string& name) {
  static const std::map<std::string, std::string> kinds{
      {"MSELoss", "mse"},
      {"WeightedMSELoss", "mse"},
      {"RMSELoss", "rmse"},
      {"MAELoss", "mae"},
      {"WeightedMAELoss", "mae"},
      {"HuberLoss", "huber"},
      {"LogCoshLoss", "logcosh"},
      {"CRPS", "crps"},
      {"KernelCRPS", "crps"},
      {"AlmostFairKernelCRPS", "crps"},
      {"EnergyScoreLoss", "energy_score"},
      {"GraphEnergyScoreLoss", "graph_energy_score"},
      {"GraphEdgeEnergyScoreLoss", "graph_edge_energy_score"},
      {"GraphEdgeCRPSLoss", "graph_edge_crps"},
      {"GraphVariogramScoreLoss", "graph_variogram_score"},
      {"SpectralAMSELoss", "spectral_amse"},
      {"PowerSpectrumLoss", "power_spectrum"},
      {"LogSpectralDistance", "log_spectral_distance"},
      {"LogFFT2Distance", "log_spectral_distance"},
      {"FourierCorrelationLoss", "fourier_correlation"},
      {"SpectralCRPSLoss", "spectral_crps"}};
  const auto found = kinds.find(name);
  return found == kinds.end() ? "" : found->second;
}

bool is_spectral(const std::string& kind) {
  return kind.starts_with("spectral") || kind == "power_spectrum" ||
         kind == "log_spectral_distance" || kind == "fourier_correlation";
}

Json projection_of(const Place& config) {
  const Place grid = config["grid"] ? config["grid"] : config["node_builder"]["grid"];
  const Place number = config["num_nearest_neighbours"], sigma = config["sigma"];
  const std::string builder = config["node_builder"].class_name();
  if (!builder.empty() && builder != "ReducedGaussianGridNodes")
    config["node_builder"].not_honoured("fields are brought to a Gaussian grid");
  if (!grid || !number || !sigma) {
    config.not_honoured("fields are brought to a Gaussian grid that is named, or stay as they are");
    return nullptr;
  }
  config["target_node_name"].no_effect("is a name only");
  config["edge_weight_attribute"].no_effect("is gauss_weight");
  config["src_node_weight_attribute"].expect(nullptr, "cells are weighed by distance only");
  config["row_normalize"].no_effect("weights of a node add up to 1");
  return Json{{"grid", grid.text()}, {"neighbours", number.integer()}, {"sigma", sigma.number()}};
}

Json transform_of(const Place& loss, const std::string& name) {
  Json transform{{"kind", "fft2d"}};
  if (name != "LogFFT2Distance") transform["kind"] = loss["transform"].text("fft2d");
  const bool sphere =
      transform["kind"] == Json("octahedral_sht") || transform["kind"] == Json("reduced_sht");
  if (sphere) {
    const bool octahedral = transform["kind"] == Json("octahedral_sht");
    const int64_t rings = octahedral ? loss["nlat"].integer() : 640;
    transform["grid"] = concat(octahedral ? "o" : "n", rings / 2);
    if (loss["truncation"]) transform["truncation"] = loss["truncation"].integer();
    loss["grid"].no_effect("is n320");
    for (const char* key : {"x_dim", "y_dim"})
      loss[key].no_effect("is for rectangles");
  } else {
    transform["x_dim"] = loss["x_dim"].integer();
    transform["y_dim"] = loss["y_dim"].integer();
    for (const char* key : {"nlat", "truncation", "grid"})
      loss[key].no_effect("is for the sphere");
  }
  const Place filter = loss["apply_filter"];
  if (transform["kind"] != Json("fft2d")) {
    filter.no_effect("is for Fourier transforms");
  } else if (filter) {
    transform["filter"] = filter.boolean();
  }
  if (const Place subgrid = loss["subgrid"]; subgrid.is_list()) {
    if (sphere) throw ConfigError(subgrid.path(), "is for rectangles");
    Json ends = Json::array();
    for (const double end : subgrid.numbers())
      ends.push_back(static_cast<int64_t>(end));
    transform["subgrid"] = ends;
  } else {
    subgrid.expect(nullptr, "must be named by two numbers");
  }
  if (const Place config = loss["projection_config"]) {
    const Json projection = projection_of(config);
    if (!projection.is_null()) transform["projection"] = projection;
  }
  return transform;
}

// Edges of the graph are known only to those who have it: elsewhere, nearest nodes.
Json LossReader::graph_of(const Place& loss) const {
  const Place graph = loss["loss_graph"];
  if (!graph) return Json{{"neighbours", 0}};
  const bool row_normalise = graph["row_normalize"].boolean(false);
  if (!rules_.has_data_edges) {
    graph.not_honoured(
        "the recipe has no edges between data nodes: choose loss.graph.neighbours and sigma, or "
        "give graph.edges such edges and set loss.graph.of_graph");
    return Json{{"neighbours", 4}, {"row_normalise", row_normalise}};
  }
  graph["edges_name"].no_effect("are those from data nodes to data nodes");
  return Json{{"of_graph", true},
              {"edge_weight", graph["edge_weight_attribute"].text("")},
              {"source_weight", graph["src_node_weight_attribute"].text("")},
              {"row_normalise", row_normalise}};
}

void LossReader::elementary(const Place& loss, const Around& around) {
  const std::string name = loss.class_name(), kind = loss_kind(name);
  if (kind.empty()) {
    loss.not_honoured(concat("there is no loss of class ", name.empty() ? "unknown" : name));
    return;
  }
  Json term{{"kind", kind}};
  if (around.weight != 1.0) term["weight"] = around.weight;
  const auto put = [&](const char* ours, const char* theirs) {
    if (loss[theirs]) term[ours] = loss[theirs].whole();
  };
  put("ignore_nans", "ignore_nans");
  put("variables", "predicted_variables");
  put("target_variables", "target_variables");
  if (kind == "huber") put("delta", "delta");
  if (kind == "crps" || kind == "spectral_crps" || kind == "graph_edge_crps") {
    const double usual = name == "KernelCRPS" ? (loss["fair"].boolean(true) ? 1.0 : 0.0)
                         : kind == "crps"     ? 0.95
                                              : 1.0;
    term["alpha"] = loss["alpha"].number(usual);
  }
  if (kind == "energy_score" || (kind.starts_with("graph_") && kind != "graph_edge_crps"))
    put("fair", "fair");
  if (kind == "energy_score") put("norm_over", "norm_over");
  if (kind == "graph_variogram_score") put("variogram_power", "p");
  if (kind == "spectral_crps") put("coefficient_magnitude", "coefficient_magnitude");
  if (kind.starts_with("graph_")) term["graph"] = graph_of(loss);
  if (is_spectral(kind)) term["transform"] = transform_of(loss, name);
  if (!around.scales.is_null()) term["scales"] = around.scales;
  if (!around.time_aggregation.empty()) term["time_aggregation"] = around.time_aggregation;
  loss["backend"].no_effect("both forms of the score are the same");
  loss["no_autocast"].no_effect("losses are computed in fp32");
  loss["check_variables_compatibility"].no_effect("units are not compared");
  const bool has_own = loss["scalers"] && !(around.is_alone && loss["scalers"].whole().empty());
  loss["scalers"].mark();
  std::vector<std::string> names =
      scalers(has_own || !around.scalers ? loss["scalers"] : around.scalers);
  if (name.starts_with("Weighted") && !rules_.sample_weights.empty())
    names.insert(names.begin(), rules_.sample_weights);
  term["scalers"] = names;
  terms_.push_back(term);
}

// The names of scalers, "*" and "!name" written out, as ours.
std::vector<std::string> LossReader::scalers(const Place& list) {
  std::vector<std::string> names, ours;
  for (const std::string& name : list.texts()) {
    if (name == "*") {
      for (const auto& [key, definition] : definitions_.members())
        names.push_back(key);
      names.insert(names.end(), rules_.defined_elsewhere.begin(), rules_.defined_elsewhere.end());
    } else if (name.starts_with("!")) {
      std::erase(names, name.substr(1));
    } else {
      names.push_back(name);
    }
  }
  for (const std::string& name : list.texts())
    if (name.starts_with("!")) std::erase(names, name.substr(1));
  for (const std::string& name : names) {
    const std::string own = scaler(name, list);
    if (!own.empty()) ours.push_back(own);
  }
  return ours;
}

std::string LossReader::scaler(const std::string& name, const Place& place) {
  if (contains(rules_.defined_elsewhere, name)) return name;
  const auto same_name = [&](const UsedScaler& used) { return used.theirs == name; };
  const auto known = std::find_if(used_.begin(), used_.end(), same_name);
  if (known != used_.end()) return known->ours;
  UsedScaler used{.theirs = name, .kind = scaler_kind(definitions_[name])};
  if (used.kind.empty()) {
    place.not_honoured(concat("names '", name, "', which is not defined or has no match here"));
    return "";
  }
  const auto same_kind = [&](const UsedScaler& u) { return u.kind == used.kind && !u.is_named; };
  used.is_named = rules_.keeps_names || needs_name(translation_, definitions_[name], used.kind) ||
                  std::any_of(used_.begin(), used_.end(), same_kind);
  // A name of our own must not hide a kind.
  used.ours = !used.is_named                              ? used.kind
              : !rules_.keeps_names && is_kind_name(name) ? name + "_own"
                                                          : name;
  used_.push_back(used);
  return used.ours;
}

void LossReader::read(const Place& loss, const Around& around) {
  const std::string name = loss.class_name();
  if (name == "CombinedLoss") {
    combined(loss, around);
  } else if (name == "MultiscaleLossWrapper") {
    scales(loss, around);
  } else if (name == "TimeAggregateLossWrapper") {
    aggregates(loss, around);
  } else {
    elementary(loss, around);
  }
}

}  // namespace

namespace {

// Returns the member of an object, or null.
Json member_of(const Json& object, const Json& key) {
  const bool has = object.is_object() && key.is_string() && object.contains(key.get<std::string>());
  return has ? object[key.get<std::string>()] : Json();
}

// The region that metrics with "inside_lam" in their names are of: a mask of the data nodes that
// one of their scalers is made of, else the output mask, outside which node weights are 0.
void import_region(Translation& t, const Place& metrics, const Place& definitions) {
  const Json attributes = t.root["graph"]["nodes"][t.datasets[0]]["attributes"].unseen_whole();
  const Json scalers = definitions.unseen_whole();
  const Section out = t.section("train")["validation"];
  for (const auto& [name, metric] : metrics.members()) {
    if (name.find("inside_lam") == std::string::npos) continue;
    if (const Json* mask = t.section("model").find("output_mask")) out.set("region", *mask, metric);
    for (const Json& used : member_of(metric.unseen_whole(), "scalers")) {
      const Json attribute = member_of(member_of(scalers, used), "nodes_attribute_name");
      const Json type = member_of(member_of(attributes, attribute), "_target_");
      const std::string text = type.is_string() ? last_part(type.get<std::string>()) : "";
      if (!text.ends_with("Mask") && !text.starts_with("Boolean")) continue;
      out.set("region", attribute, metric);
      t.node_attributes.push_back(attribute.get<std::string>());
      return;
    }
  }
}

}  // namespace

void import_loss(Translation& t, const LossRules& rules) {
  const Place training = t.root["training"];
  const Section out = t.section("loss");
  const char* why = "the loss and the scalers of the first dataset are for all";
  Place definitions = t.of_all_datasets(training["scalers"], why);
  if (definitions["builders"]) definitions = definitions["builders"];
  const Place loss = t.of_all_datasets(training["training_loss"], why);
  if (!loss) throw ConfigError(loss.path(), "is missing: what is to be minimised?");
  LossReader reader(t, definitions, rules);
  reader.read(loss, {});
  const std::vector<Json>& terms = reader.terms();
  if (terms.size() == 1) {
    for (const auto& [key, value] : terms[0].items())
      out.set(key, value, loss);
  } else if (!terms.empty()) {
    out.set("scalers", Json::array(), loss);
    out.set("terms", terms, loss);
  } else if (loss["losses"].is_list() && loss["losses"].elements().empty()) {
    throw ConfigError(loss["losses"].path(), "is empty: what is to be minimised?");
  }
  import_scalers(t, definitions, reader.used_scalers(), out);
  training["loss_gradient_scaling"].expect(false, "gradients of the loss are not rescaled");
  if (t.is_whole)
    import_region(t, t.of_dataset(training["validation_metrics"], t.datasets[0]), definitions);
  training["validation_metrics"].no_effect(
      "validation scores the loss, and forecasts by RMSE against persistence in physical units");
  training["metrics"].no_effect("every predicted variable is scored");
}

Imported import_loss_section(const Json& training, const LossRules& rules) {
  const Source source(Json{{"training", training}});
  Imported imported;
  Translation t{.root = source.root(), .target = imported.target, .name = "", .is_whole = false};
  import_loss(t, rules);
  imported.remarks = source.remarks();
  return imported;
}

}  // namespace aifs::anemoi
