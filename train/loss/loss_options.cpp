// SPDX-License-Identifier: Apache-2.0
#include "train/loss/loss_options.h"

#include <algorithm>

#include "core/check.h"

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

void check_all_known(const std::vector<std::string>& wanted, const std::vector<std::string>& known,
                     const std::string& path, const char* fault) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::find(known.begin(), known.end(), wanted[i]) == known.end()) {
      throw ConfigError(concat(path, ".", i), concat("'", wanted[i], "' ", fault),
                        nearest_names(wanted[i], known));
    }
  }
}

bool is_used(const LossOptions& loss, const std::string& scaler) {
  for (const auto& [path, term] : loss.effective_terms()) {
    if (std::find(term.scalers.begin(), term.scalers.end(), scaler) != term.scalers.end())
      return true;
  }
  return false;
}

}  // namespace

bool is_ensemble_score(LossChoice kind) {
  return kind == LossChoice::kCrps || kind == LossChoice::kEnergyScore ||
         kind == LossChoice::kSpectralCrps || is_graph_score(kind);
}

bool is_graph_score(LossChoice kind) {
  return kind >= LossChoice::kGraphEnergyScore && kind <= LossChoice::kGraphVariogramScore;
}

bool is_spectral(LossChoice kind) {
  return kind >= LossChoice::kSpectralAmse;
}

void LossGraphOptions::bind(config::Binder& b) {
  b.integer("neighbours", neighbours, {.min = 0, .max = 4096},
            {"nearest nodes of each node, itself included; 0: each node by itself"});
  b.number(
      "sigma", sigma, {.min = 0.0},
      {"width of the Gaussian that weighs neighbours by distance; 0 weighs them equally", "rad"});
  b.boolean("of_graph", of_graph,
            {"the edges of the graph from data nodes to data nodes, instead of nearest nodes"});
  b.text("edge_weight", edge_weight,
         {"of_graph: attribute of edges that weighs them; empty weighs them equally"});
  b.text("source_weight", source_weight,
         {"of_graph: attribute of the nodes where edges start, a further factor; empty: none"});
  b.boolean("row_normalise", row_normalise, {"divide the weights of a node by their sum"});
}

void LossGraphOptions::validate(const std::string& path) const {
  if (of_graph && sigma != 0.0)
    throw ConfigError(path + ".sigma", "is for nearest nodes", "name an edge_weight");
  if (!of_graph && !edge_weight.empty())
    throw ConfigError(path + ".edge_weight", "is for edges of the graph", "set of_graph");
  if (!of_graph && !source_weight.empty())
    throw ConfigError(path + ".source_weight", "is for edges of the graph", "set of_graph");
}

void ProjectionOptions::bind(config::Binder& b) {
  b.text("grid", grid,
         {"Gaussian grid to which fields are brought first, as \"o32\"; empty: none"});
  b.integer("neighbours", neighbours, {.min = 1, .max = 4096}, {"nearest nodes that are averaged"});
  b.number("sigma", sigma, {.min = 1e-9}, {"width of the Gaussian that weighs them", "rad"});
}

void TransformOptions::bind(config::Binder& b) {
  b.choice("kind", kind, {"Fourier or cosine transform of a rectangle, or spherical harmonics"});
  b.text("grid", grid,
         {"sphere: the Gaussian grid, octahedral (o96) or reduced (n320); empty: graph.grid"});
  b.integer("truncation", truncation, {.min = -1},
            {"sphere: largest degree; -1: half the rings less one"});
  b.integer("x_dim", x_dim, {.min = 0}, {"rectangle: points in the direction that runs fastest"});
  b.integer("y_dim", y_dim, {.min = 0}, {"rectangle: points in the other direction"});
  b.boolean("filter", filter, {"fft2d: leave out waves shorter than two points"});
  b.integer_list("subgrid", subgrid, {.min = 0},
                 {"rectangle: first node and the one after the last; empty: all nodes"});
  b.section("projection", projection, {"another grid for the transform"});
}

void TransformOptions::validate(const std::string& path) const {
  if (!subgrid.empty() && (subgrid.size() != 2 || subgrid[0] >= subgrid[1])) {
    throw ConfigError(path + ".subgrid", "needs two numbers, the first less than the second");
  }
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
  b.list("smoothers", smoothers,
         {"smoothers from coarse to fine, one by one; the fields as they are come as the last "
          "scale. Instead of num_scales"});
  b.integer("num_scales", num_scales, {.min = 0, .max = 32},
            {"smoothed scales besides the finest one"});
  b.integer("base_neighbours", base_neighbours, {.min = 1, .max = 4096},
            {"nearest nodes of the finest smoother"});
  b.number("base_sigma", base_sigma, {.min = 1e-9}, {"width of the finest smoother", "rad"});
  b.number("scale_factor", scale_factor, {.min = 1.0},
           {"by how much neighbours and width grow from scale to scale"});
  b.boolean(
      "of_aggregates", of_aggregates,
      {"with time_aggregation: scales of the aggregates, instead of aggregates of each scale"});
}

void ScalesOptions::validate(const std::string& path) const {
  if (!files.empty() && num_scales > 0) {
    throw ConfigError(path + ".files", "and num_scales are two ways to say the same",
                      "leave one of them out");
  }
  if (!smoothers.empty() && (num_scales > 0 || !files.empty())) {
    throw ConfigError(path + ".smoothers", "come instead of files and num_scales",
                      "leave the others out");
  }
  const int64_t made = smoothers.empty() ? num_scales : std::ssize(smoothers);
  const size_t wanted = !files.empty()                 ? files.size()
                        : weights.empty() && made == 0 ? 0
                                                       : static_cast<size_t>(made) + 1;
  if (weights.size() != wanted) {
    throw ConfigError(path + ".weights", concat("has ", weights.size(), " values, ", files.size(),
                                                " files and ", made, " smoothers need ", wanted));
  }
}

void LossTermOptions::bind(config::Binder& b) {
  b.number("weight", weight, {}, {"factor of the loss"});
  b.choice("kind", kind, {"error or score, of normalised values"});
  b.number("huber_delta", huber_delta, {.min = 1e-9},
           {"huber: where the error turns from quadratic to linear", "normalised"});
  b.boolean("ignore_nans", ignore_nans, {"count NaN in prediction or target as no error"});
  b.number("alpha", alpha, {.min = 0.0, .max = 1.0},
           {"crps, spectral_crps, graph_edge_crps: 1 is the fair score, 0 the plain one"});
  b.boolean("fair", fair, {"energy and variogram scores: fair, or plain"});
  b.choice("norm_over", norm_over, {"energy_score: what its norm goes over"});
  b.number("variogram_power", variogram_power, {.min = 1e-3},
           {"graph_variogram_score: power of the differences"});
  b.boolean("coefficient_magnitude", coefficient_magnitude,
            {"spectral_crps: of the moduli of coefficients"});
  b.text_list("variables", variables, {"predicted variables it looks at; empty: all"});
  b.text_list("target_variables", target_variables,
              {"what they are compared with, one each; empty: themselves"});
  b.text_list("scalers", scalers,
              {"weights multiplied onto the errors, in this order: pressure_level, "
               "general_variable, node_weights, time_steps, stdev_tendency, var_tendency, "
               "nan_mask_weights, lead_time_decay, variable_mask, spectral, or a name among "
               "loss.named_scalers"});
  b.text_list("time_aggregation", time_aggregation,
              {"compare mean, min, max or diff of the output times instead of each; empty: each"});
  b.section("scales", scales, {"a loss of each scale of the fields"});
  b.section("graph", graph, {"neighbourhoods of graph scores"});
  b.section("transform", transform, {"from nodes to waves, for spectral losses"});
}

void LossTermOptions::validate(const std::string& path) const {
  time_aggregates(path + ".time_aggregation");
  if (scales.of_aggregates && (time_aggregation.empty() || scales.weights.empty()))
    throw ConfigError(path + ".scales.of_aggregates", "needs time_aggregation and scales");
  const bool of_edges = kind == LossChoice::kGraphEdgeEnergyScore ||
                        kind == LossChoice::kGraphEdgeCrps ||
                        kind == LossChoice::kGraphVariogramScore;
  if (of_edges && graph.is_empty())
    throw ConfigError(path + ".graph.neighbours", concat(enum_name(kind), " needs neighbours"));
  if (!variables.empty() && !target_variables.empty() &&
      target_variables.size() != variables.size()) {
    throw ConfigError(
        path + ".target_variables",
        concat("has ", target_variables.size(), " names for ", variables.size(), " in variables"));
  }
  const bool by_degree = kind == LossChoice::kSpectralAmse || kind == LossChoice::kPowerSpectrum;
  const bool sphere = transform.kind == TransformKind::kOctahedralSht ||
                      transform.kind == TransformKind::kReducedSht;
  if (by_degree && !sphere) {
    throw ConfigError(path + ".transform.kind", concat(enum_name(kind), " needs the sphere"),
                      "use octahedral_sht or reduced_sht");
  }
  if (is_spectral(kind) && ignore_nans) {
    throw ConfigError(path + ".ignore_nans", "a transform of a field with NaN is not defined");
  }
  if (is_spectral(kind) && sphere && !transform.subgrid.empty()) {
    throw ConfigError(path + ".transform.subgrid", "is for rectangles");
  }
  if (is_spectral(kind) && !sphere && (transform.x_dim == 0 || transform.y_dim == 0)) {
    throw ConfigError(path + ".transform.x_dim", "a rectangle needs x_dim and y_dim");
  }
}

std::vector<TimeAggregate> LossTermOptions::time_aggregates(const std::string& path) const {
  return named<TimeAggregate>(time_aggregation, path, "time aggregate");
}

void LossOptions::bind(config::Binder& b) {
  LossTermOptions::bind(b);
  b.list("terms", terms,
         {"several losses, added with their weights; they take the scalers above unless they name "
          "their own. Empty: the one loss above"});
  ScalerSettings::bind(b);
  b.choice("node_norm", node_norm, {"normalisation of the weights of nodes (scaler node_weights)"});
  b.map("named_scalers", named_scalers,
        {"further scalers, by the names that lists of scalers use for them: several of one kind, "
         "or with a normalisation of their own"});
}

void LossOptions::validate(const std::string& path) const {
  ScalerSettings::validate(path);
  const auto all = effective_terms();
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string own = terms.empty() ? path : all[i].first;
    all[i].second.validate(own);
    check_scalers(all[i].second, own);
  }
}

std::string LossOptions::scaler_path(const std::string& name) const {
  for (const auto& [known, scaler] : named_scalers)
    if (known == name) return "loss.named_scalers." + name;
  return "loss";
}

ScalerOptions LossOptions::scaler(const std::string& name, const std::string& path) const {
  std::vector<std::string> names = enum_names<ScalerKind>();
  std::erase(names, enum_name(ScalerKind::kValues));  // nothing without a name
  for (const auto& [known, scaler] : named_scalers) {
    if (known == name) return scaler;
    names.push_back(known);
  }
  for (const auto& [usual, known] : EnumNames<ScalerKind>::table) {
    if (known != name || usual == ScalerKind::kValues) continue;
    ScalerOptions options;
    static_cast<ScalerSettings&>(options) = *this;
    options.kind = usual;
    if (usual == ScalerKind::kNodeWeights) options.norm = node_norm;
    if (usual == ScalerKind::kTimeSteps) options.norm = WeightNorm::kUnitSum;
    return options;
  }
  throw ConfigError(path, concat("no scaler '", name, "'"), nearest_names(name, names));
}

void LossOptions::check_scalers(const LossTermOptions& term, const std::string& path) const {
  const ScalerKind wanted =
      is_spectral(term.kind) ? ScalerKind::kSpectral : ScalerKind::kNodeWeights;
  const ScalerKind other =
      is_spectral(term.kind) ? ScalerKind::kNodeWeights : ScalerKind::kSpectral;
  bool has_grid = term.scalers.empty();
  for (size_t i = 0; i < term.scalers.size(); ++i) {
    const std::string& name = term.scalers[i];
    const std::string own_path = concat(path, ".scalers.", i);
    const ScalerOptions options = scaler(name, own_path);
    if (std::count(term.scalers.begin(), term.scalers.begin() + static_cast<ptrdiff_t>(i), name)) {
      throw ConfigError(own_path, concat("'", name, "' is named twice"));
    }
    const bool is_named = scaler_path(name) != "loss";
    if (!is_named && options.kind == other) {
      throw ConfigError(path + ".scalers", concat("'", name, "' is not for ", enum_name(term.kind)),
                        is_spectral(term.kind) ? "its errors are of waves: use \"spectral\""
                                               : "its errors are of nodes: use \"node_weights\"");
    }
    const std::vector<Axis> axes = options.acting_axes();
    const bool on_grid = std::find(axes.begin(), axes.end(), kGrid) != axes.end();
    has_grid = has_grid || (is_named ? on_grid : options.kind == wanted);
  }
  if (!has_grid) {
    throw ConfigError(path + ".scalers",
                      concat("a loss with scalers needs ", enum_name(wanted), " among them"),
                      "without it the loss would grow with the size of the grid");
  }
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
  const auto require_reader = [&](bool is_set, const char* key, ScalerKind reader) {
    if (!is_set || is_used(*this, enum_name(reader))) return;
    throw ConfigError(concat("loss.", key),
                      concat("is read by the scaler '", enum_name(reader), "', which no loss has"),
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
  for (const auto& [name, scaler] : named_scalers) {
    if (!is_used(*this, name)) {
      throw ConfigError("loss.named_scalers." + name, "is used by no loss",
                        "add it to loss.scalers, or leave it out");
    }
  }
  for (const auto& [path, term] : effective_terms()) {
    if (is_ensemble_score(term.kind) && members < 2) {
      throw ConfigError(path + ".kind",
                        concat("'", enum_name(term.kind), "' compares the members of an ensemble, ",
                               "the network predicts ", members),
                        "choose a loss of single forecasts, or a network with members");
    }
    if (!term.time_aggregation.empty() && times_out < 2) {
      throw ConfigError(path + ".time_aggregation",
                        "needs several output times, data.multistep_output is 1");
    }
  }
}

void LossOptions::check_names(const data::VariableTable& table,
                              const std::vector<std::string>& targets) const {
  const std::vector<std::string> outputs = table.output_names();
  for (const auto& [path, term] : effective_terms()) {
    check_all_known(term.variables, outputs, path + ".variables", "is not predicted");
    check_all_known(term.target_variables, targets, path + ".target_variables",
                    "is nothing to compare with");
    if (!term.target_variables.empty() && term.variables.empty() &&
        term.target_variables.size() != outputs.size()) {
      throw ConfigError(
          path + ".target_variables",
          concat("has ", term.target_variables.size(), " names for ", outputs.size(), " outputs"));
    }
    for (const std::string& name : term.scalers) {
      const ScalerOptions options = scaler(name, path + ".scalers");
      if (options.kind == ScalerKind::kGeneralVariable)
        train::variable_weights(outputs, options.variable_weights, scaler_path(name));
    }
  }
  train::variable_mask(outputs, masked_variables, mask_inverse);
}

}  // namespace aifs::train
