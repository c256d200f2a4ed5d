// SPDX-License-Identifier: Apache-2.0
#include "train/loss/loss_setup.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"
#include "core/time.h"
#include "graph/edges/edge_attributes.h"
#include "graph/edges/neighbour_edges.h"
#include "graph/nodes/gaussian_grid.h"
#include "train/loss/graph_loss.h"
#include "train/loss/multi_scale_loss.h"

namespace aifs::train {

namespace {

at::Tensor tendency_scaler(const ScalerOptions& options, const LossInputs& inputs, int power) {
  const int64_t delta_s = options.tendency.timestep.empty()
                              ? inputs.timestep_s
                              : parse_duration(options.tendency.timestep);
  const auto found = inputs.tendencies.find(delta_s);
  if (found == inputs.tendencies.end()) {
    std::string known;
    for (const auto& [delta, statistics] : inputs.tendencies) {
      known += concat(known.empty() ? "" : ", ", format_duration(delta));
    }
    throw DataError(
        concat("the dataset has no tendency statistics over ", format_duration(delta_s)),
        known.empty() ? "it has none at all; leave the tendency scaler out of loss.scalers"
                      : concat("it has them over ", known));
  }
  return tendency_weights(inputs.variables, inputs.statistics, found->second, power,
                          options.tendency.skip_first_column);
}

at::Tensor node_attribute(const LossInputs& inputs, const std::string& name,
                          const std::string& path) {
  const auto found = inputs.nodes.attributes.find(name);
  if (found == inputs.nodes.attributes.end()) {
    std::vector<std::string> known;
    for (const auto& [attribute, values] : inputs.nodes.attributes)
      known.push_back(attribute);
    throw ConfigError(path, concat("the data nodes have no attribute '", name, "'"),
                      nearest_names(name, known));
  }
  return at::tensor(at::ArrayRef<float>(found->second.values), at::kFloat);
}

at::Tensor node_weights(const ScalerOptions& options, const LossInputs& inputs,
                        const std::string& path) {
  at::Tensor weights = node_attribute(inputs, options.node_attribute, path + ".node_attribute");
  if (options.node_inverse) weights = (weights == 0.0).to(at::kFloat);
  if (options.node_mask.empty()) return weights;
  return reweighted_nodes(weights,
                          node_attribute(inputs, options.node_mask, path + ".node_mask") != 0.0,
                          options.node_mask_share);
}

at::Tensor time_scaler(const ScalerOptions& options, const LossInputs& inputs,
                       const std::string& path) {
  if (options.time_weights.empty() || options.norm == WeightNorm::kUnitSum)
    return time_weights(options.time_weights, inputs.times_out, path);
  return at::tensor(options.time_weights, at::kDouble).to(at::kFloat);
}

at::Tensor lead_time_scaler(const ScalerOptions& options, const LossInputs& inputs) {
  std::vector<double> hours = options.lead_time.hours;
  for (int64_t t = 1; options.lead_time.hours.empty() && t <= inputs.times_out; ++t)
    hours.push_back(static_cast<double>(t * inputs.timestep_s) / 3600.0);
  return lead_time_weights(hours, options.lead_time);
}

// The weights before their norm, with one dimension for each axis.
at::Tensor scaler_values(const ScalerOptions& options, const std::string& path,
                         const LossInputs& inputs, int64_t modes) {
  const std::vector<std::string> outputs = inputs.variables.output_names();
  switch (options.kind) {
    case ScalerKind::kPressureLevel:
      return level_weights(outputs, options.level);
    case ScalerKind::kGeneralVariable:
      return variable_weights(outputs, options.variable_weights, path);
    case ScalerKind::kNodeWeights:
      return node_weights(options, inputs, path);
    case ScalerKind::kTimeSteps:
      return time_scaler(options, inputs, path);
    case ScalerKind::kStdevTendency:
      return tendency_scaler(options, inputs, 1);
    case ScalerKind::kVarTendency:
      return tendency_scaler(options, inputs, 2);
    case ScalerKind::kLeadTimeDecay:
      return lead_time_scaler(options, inputs);
    case ScalerKind::kVariableMask:
      return variable_mask(outputs, options.masked_variables, options.mask_inverse, path);
    case ScalerKind::kSpectral:
      return spectral_weights(options.modes > 0 ? options.modes : modes, options.repeats);
    case ScalerKind::kValues: {
      const at::Tensor values = at::tensor(options.values, at::kDouble);
      return options.shape.empty() ? values : values.reshape(options.shape);
    }
    case ScalerKind::kNanMask:
      break;
  }
  throw Error(concat("no values of the scaler '", enum_name(options.kind), "'"));
}

graph::NodeSet gaussian_nodes(const graph::GaussianGrid& grid) {
  const graph::Coordinates points = graph::gaussian_coordinates(grid);
  graph::NodeSet nodes;
  nodes.lat_rad = graph::radians_from_degrees(points.lat_deg);
  nodes.lon_rad = graph::radians_from_degrees(points.lon_deg);
  return nodes;
}

graph::GaussianGrid gaussian_grid(const std::string& name, const std::string& path) {
  try {
    return graph::parse_gaussian_grid(name);
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    throw ConfigError(path, error.what(), error.hint());
  }
}

// The grid of a transform on the sphere.
graph::GaussianGrid sphere_grid(const TransformOptions& options, const LossInputs& inputs,
                                const std::string& path) {
  const std::string name = !options.grid.empty()              ? options.grid
                           : !options.projection.grid.empty() ? options.projection.grid
                                                              : inputs.grid_name;
  const graph::GaussianGrid grid = gaussian_grid(name, path + ".grid");
  const bool octahedral = grid.kind == graph::GaussianKind::kOctahedral;
  if (octahedral != (options.kind == TransformKind::kOctahedralSht)) {
    throw ConfigError(path + ".kind",
                      concat("'", enum_name(options.kind), "' on the grid '", name, "'"));
  }
  if (options.truncation >= 2 * grid.number) {
    throw ConfigError(path + ".truncation",
                      concat("must be less than the ", 2 * grid.number, " rings of '", name, "'"));
  }
  return grid;
}

bool on_sphere(const TransformOptions& options) {
  return options.kind == TransformKind::kOctahedralSht ||
         options.kind == TransformKind::kReducedSht;
}

// Throws ConfigError if the transform is not of as many points as it gets.
void check_transform(const TransformOptions& options, const LossInputs& inputs,
                     const std::string& path) {
  int64_t points = options.x_dim * options.y_dim, given = inputs.nodes.num_nodes();
  if (on_sphere(options)) points = sphere_grid(options, inputs, path).num_points();
  if (!options.projection.grid.empty()) {
    given = gaussian_grid(options.projection.grid, path + ".projection.grid").num_points();
  }
  if (!options.subgrid.empty()) {
    if (options.subgrid[1] > given) {
      throw ConfigError(path + ".subgrid", concat("ends beyond the ", given, " nodes"));
    }
    given = options.subgrid[1] - options.subgrid[0];
  }
  if (given != points) {
    throw ConfigError(path, concat("a transform of ", points, " points for a field of ", given));
  }
}

SparseRowsPtr used_matrix(const SparseRowsPtr& matrix, const LossInputs& inputs) {
  return inputs.matrix_used && matrix ? inputs.matrix_used(matrix) : matrix;
}

SpectralTransform build_transform(const TransformOptions& options, const LossInputs& inputs,
                                  const std::string& path) {
  check_transform(options, inputs, path);
  SpectralTransform transform;
  transform.kind = options.kind;
  transform.x_dim = options.x_dim;
  transform.y_dim = options.y_dim;
  transform.filter = options.filter;
  if (!options.subgrid.empty()) transform.subgrid = {options.subgrid[0], options.subgrid[1]};
  if (on_sphere(options)) {
    const graph::GaussianGrid grid = sphere_grid(options, inputs, path);
    transform.sphere = std::make_shared<const model::SphericalTransform>(
        grid.row_lengths(),
        options.truncation < 0 ? default_truncation(2 * grid.number) : options.truncation);
  }
  if (!options.projection.grid.empty()) {
    const auto target =
        gaussian_nodes(gaussian_grid(options.projection.grid, path + ".projection.grid"));
    transform.projection =
        used_matrix(gaussian_smoother(inputs.nodes, target, options.projection.neighbours,
                                      options.projection.sigma),
                    inputs);
  }
  return transform;
}

const std::vector<float>& attribute_values(const std::map<std::string, graph::Attribute>& all,
                                           const std::string& name, const std::string& path) {
  const auto found = all.find(name);
  if (found != all.end() && found->second.width == 1) return found->second.values;
  std::vector<std::string> known;
  for (const auto& [attribute, values] : all)
    if (values.width == 1) known.push_back(attribute);
  throw ConfigError(path, concat("there is no attribute '", name, "' with one value each"),
                    nearest_names(name, known));
}

// The edges of the graph that lead from data nodes to data nodes.
LossGraphEdges edges_of_graph(const LossGraphOptions& options, const LossInputs& inputs,
                              const std::string& path) {
  if (!inputs.edges) {
    throw ConfigError(path + ".of_graph", "the graph has no edges from data nodes to data nodes",
                      "use the nearest nodes, or a graph.file that has such edges");
  }
  LossGraphEdges edges;
  edges.source.assign(inputs.edges->source_index.begin(), inputs.edges->source_index.end());
  edges.target.assign(inputs.edges->target_index.begin(), inputs.edges->target_index.end());
  if (!options.edge_weight.empty()) {
    edges.weight =
        attribute_values(inputs.edges->attributes, options.edge_weight, path + ".edge_weight");
  }
  if (!options.source_weight.empty()) {
    edges.source_weight =
        attribute_values(inputs.nodes.attributes, options.source_weight, path + ".source_weight");
  }
  return edges;
}

LossGraphEdges nearest_edges(const LossGraphOptions& options, const LossInputs& inputs) {
  const graph::EdgeList list =
      graph::knn_edges(inputs.nodes, inputs.nodes, options.neighbours, /*num_threads=*/0);
  LossGraphEdges edges;
  edges.source.assign(list.source_index.begin(), list.source_index.end());
  edges.target.assign(list.target_index.begin(), list.target_index.end());
  if (options.sigma > 0.0) {
    const graph::EdgeEnds ends{.source = inputs.nodes,
                               .target = inputs.nodes,
                               .source_index = list.source_index,
                               .target_index = list.target_index,
                               .num_threads = 0};
    edges.weight = graph::gaussian_distance_weights<float>(ends, options.sigma);
  }
  return edges;
}

GraphLossOptions build_graph(const LossGraphOptions& options, const std::string& path,
                             const LossInputs& inputs, bool self_edges) {
  if (options.is_empty()) return {};
  LossGraphEdges edges =
      options.of_graph ? edges_of_graph(options, inputs, path) : nearest_edges(options, inputs);
  edges.row_normalise = options.row_normalise;
  edges.self_edges = self_edges;
  return {used_matrix(loss_graph(edges, inputs.nodes.num_nodes()), inputs), options.row_normalise};
}

// Names of what the columns of a target are.
std::vector<std::string> target_names(const LossInputs& inputs) {
  return inputs.target_names.empty() ? inputs.variables.output_names() : inputs.target_names;
}

std::vector<ColumnPair> column_pairs(const LossTermOptions& term, const LossInputs& inputs) {
  const bool all = term.variables.empty() && term.target_variables.empty();
  if (all && inputs.target_names.empty()) return {};
  const std::vector<std::string> predicted =
      term.variables.empty() ? inputs.variables.output_names() : term.variables;
  const std::vector<std::string>& compared =
      term.target_variables.empty() ? predicted : term.target_variables;
  const std::vector<std::string> targets = target_names(inputs);
  std::vector<ColumnPair> pairs;
  for (size_t i = 0; i < predicted.size(); ++i) {
    const auto found = std::find(targets.begin(), targets.end(), compared[i]);
    AIFS_CHECK(found != targets.end(), "no target column '", compared[i], "'");
    pairs.push_back({inputs.variables.find_output(predicted[i]), found - targets.begin()});
  }
  return pairs;
}

ElementaryOptions elementary_options(const LossTermOptions& term, const LossOptions& options,
                                     const LossInputs& inputs, int64_t modes) {
  ElementaryOptions result;
  result.columns = column_pairs(term, inputs);
  result.ignore_nans = term.ignore_nans;
  for (const std::string& name : term.scalers)
    result.scalers.push_back(build_scaler(options, name, inputs, modes));
  return result;
}

LossPtr build_spectral(const LossTermOptions& term, const std::string& path,
                       const LossOptions& options, const LossInputs& inputs) {
  SpectralTransform transform = build_transform(term.transform, inputs, path + ".transform");
  const bool by_degree =
      term.kind == LossChoice::kSpectralAmse || term.kind == LossChoice::kPowerSpectrum;
  const int64_t modes = by_degree ? transform.sphere->size() : transform.num_coefficients();
  ElementaryOptions own = elementary_options(term, options, inputs, modes);
  if (term.kind == LossChoice::kSpectralCrps) {
    return std::make_shared<SpectralCrpsLoss>(term.alpha, term.coefficient_magnitude,
                                              std::move(transform), std::move(own), path);
  }
  const SpectralKind kind = term.kind == LossChoice::kSpectralAmse    ? SpectralKind::kAmse
                            : term.kind == LossChoice::kPowerSpectrum ? SpectralKind::kPower
                            : term.kind == LossChoice::kFourierCorrelation
                                ? SpectralKind::kCorrelation
                                : SpectralKind::kLogDistance;
  return std::make_shared<SpectralLoss>(kind, std::move(transform), std::move(own), path);
}

LossPtr build_elementary(const LossTermOptions& term, const std::string& path,
                         const LossOptions& options, const LossInputs& inputs) {
  if (is_spectral(term.kind)) return build_spectral(term, path, options, inputs);
  ElementaryOptions own = elementary_options(term, options, inputs, 0);
  const auto edges = [&](EdgeScore kind) -> LossPtr {
    const EdgeScoreOptions score{
        .kind = kind, .fair = term.fair, .alpha = term.alpha, .p = term.variogram_power};
    return std::make_shared<GraphEdgeLoss>(
        score, build_graph(term.graph, path + ".graph", inputs, /*self_edges=*/false),
        std::move(own));
  };
  const auto pointwise = [&](LossKind kind) -> LossPtr {
    return std::make_shared<PointwiseTerm>(kind, term.huber_delta, std::move(own));
  };
  switch (term.kind) {
    case LossChoice::kMse:
      return pointwise(LossKind::kMse);
    case LossChoice::kRmse:
      return pointwise(LossKind::kRmse);
    case LossChoice::kMae:
      return pointwise(LossKind::kMae);
    case LossChoice::kHuber:
      return pointwise(LossKind::kHuber);
    case LossChoice::kLogCosh:
      return pointwise(LossKind::kLogCosh);
    case LossChoice::kCrps:
      return std::make_shared<CrpsLoss>(term.alpha, std::move(own));
    case LossChoice::kEnergyScore:
      return std::make_shared<EnergyLoss>(term.norm_over, term.fair, std::move(own));
    case LossChoice::kGraphEnergyScore:
      return std::make_shared<GraphEnergyLoss>(
          term.fair, build_graph(term.graph, path + ".graph", inputs, /*self_edges=*/true),
          std::move(own));
    case LossChoice::kGraphEdgeEnergyScore:
      return edges(EdgeScore::kEnergy);
    case LossChoice::kGraphEdgeCrps:
      return edges(EdgeScore::kCrps);
    case LossChoice::kGraphVariogramScore:
      return edges(EdgeScore::kVariogram);
    default:
      throw Error(concat("no such loss: ", enum_name(term.kind)));
  }
}

// A loss of the aggregates over time, whose differences the first scaler over time weighs.
LossPtr of_aggregates(LossPtr loss, const LossTermOptions& term, const std::string& path,
                      const LossOptions& options, const LossInputs& inputs) {
  at::Tensor weights;
  for (const std::string& name : term.scalers) {
    const std::vector<Axis> axes = options.scaler(name, path + ".scalers").acting_axes();
    if (weights.defined() || std::find(axes.begin(), axes.end(), kTime) == axes.end()) continue;
    weights = build_scaler(options, name, inputs).factor.reshape({-1});
  }
  return std::make_shared<TimeAggregateLoss>(term.time_aggregates(path), std::move(loss), weights);
}

std::vector<SparseRowsPtr> build_smoothers(const ScalesOptions& s, const LossInputs& inputs) {
  if (s.weights.empty()) return {};
  std::vector<SparseRowsPtr> smoothers;
  if (!s.files.empty()) {
    smoothers = smoothers_of(s.files, inputs.nodes.num_nodes());
  } else {
    smoothers = smoothers_on(inputs.nodes, !s.smoothers.empty()
                                               ? s.smoothers
                                               : smoother_series(s.num_scales, s.base_neighbours,
                                                                 s.base_sigma, s.scale_factor));
  }
  for (SparseRowsPtr& smoother : smoothers)
    smoother = used_matrix(smoother, inputs);
  return smoothers;
}

LossPtr build_term(const LossTermOptions& term, const std::string& path, const LossOptions& options,
                   const LossInputs& inputs) {
  std::vector<SparseRowsPtr> smoothers = build_smoothers(term.scales, inputs);
  LossPtr loss = build_elementary(term, path, options, inputs);
  const auto of_scales = [&](const LossPtr& inner) -> LossPtr {
    if (smoothers.empty()) return inner;
    return std::make_shared<MultiScaleLoss>(std::move(smoothers), term.scales.weights, inner);
  };
  if (term.scales.of_aggregates) loss = of_scales(loss);
  if (!term.time_aggregation.empty()) loss = of_aggregates(loss, term, path, options, inputs);
  return term.scales.of_aggregates ? loss : of_scales(loss);
}

}  // namespace

void check_loss(const LossOptions& options, const LossInputs& inputs) {
  options.check_names(inputs.variables, target_names(inputs));
  for (const auto& [path, term] : options.effective_terms()) {
    if (is_spectral(term.kind)) check_transform(term.transform, inputs, path + ".transform");
    for (const std::string& name : term.scalers) {
      const ScalerKind kind = options.scaler(name, path + ".scalers").kind;
      const bool of_nodes = kind == ScalerKind::kNodeWeights || kind == ScalerKind::kSpectral;
      if (!of_nodes) build_scaler(options, name, inputs);
    }
  }
}

Scaler build_scaler(const LossOptions& options, const std::string& name, const LossInputs& inputs,
                    int64_t modes) {
  const ScalerOptions scaler = options.scaler(name, "loss.scalers");
  if (scaler.kind == ScalerKind::kNanMask) return {name, {}, scaler.acting_axes()};
  const at::Tensor values = scaler_values(scaler, options.scaler_path(name), inputs, modes);
  const at::Tensor normalised =
      scaler.kind == ScalerKind::kTimeSteps && scaler.norm == WeightNorm::kUnitSum
          ? values  // they are already
          : normalise_weights(values, scaler.norm);
  return over_axes(name, normalised.to(inputs.device, inputs.dtype), scaler.acting_axes());
}

LossPtr build_loss(const LossOptions& options, const LossInputs& inputs) {
  options.check_names(inputs.variables, target_names(inputs));
  std::vector<WeightedSum::Part> parts;
  for (const auto& [path, term] : options.effective_terms())
    parts.push_back({build_term(term, path, options, inputs), term.weight});
  if (parts.size() == 1 && parts[0].weight == 1.0) return parts[0].loss;
  return std::make_shared<WeightedSum>(std::move(parts));
}

Scaler nan_mask_scaler(const at::Tensor& nan_mask, const data::VariableTable& variables,
                       at::ScalarType dtype) {
  const at::Tensor columns =
      at::tensor(variables.output_columns(), at::kLong).to(nan_mask.device());
  const at::Tensor valid = 1 - nan_mask.index_select(-1, columns).to(dtype);
  return over_axes(kNanMaskName, valid, {kBatch, kGrid, kVariable});
}

LossCall call_of_batch(const NodeSlice& nodes, const at::Tensor& nan_mask,
                       const data::VariableTable& variables, const at::Tensor& values) {
  LossCall call;
  call.nodes = nodes;
  if (nan_mask.defined()) {
    call.nan_mask = nan_mask_scaler(nan_mask.to(values.device()), variables, values.scalar_type());
  }
  return call;
}

}  // namespace aifs::train
