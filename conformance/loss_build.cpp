// SPDX-License-Identifier: Apache-2.0
#include "conformance/loss_build.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "conformance/report.h"
#include "conformance/tensors.h"
#include "graph/nodes/gaussian_grid.h"
#include "train/loss/ensemble_loss.h"
#include "train/loss/graph_loss.h"
#include "train/loss/huber.h"
#include "train/loss/logcosh.h"
#include "train/loss/mae.h"
#include "train/loss/mse.h"
#include "train/loss/multi_scale_loss.h"
#include "train/loss/spectral_loss.h"

namespace aifs::conformance {

namespace {

using train::ElementaryOptions;
using train::LossPtr;

constexpr double kEnergyGradient = 1e-5, kExtendedGradient = 5e-6, kNoisyValue = 1e-3;
constexpr double kVariogramSquareValue = 1e-4;
// Where small differences of large sums are added up, the float32 values of single variables are
// off by up to 4e-6 in the reference itself, against its float64 twin.
constexpr double kCancelling = 5e-6;

class Builder {
 public:
  Builder(const LossGrid& grid, const at::Tensor& sample_weights, at::ScalarType dtype,
          const std::vector<train::SparseRowsPtr>& stored)
      : grid_(grid), sample_weights_(sample_weights), dtype_(dtype), stored_(stored) {}

  LossPtr build(const Json& config, const Json& inherited_scalers);
  BuiltLoss& result() { return result_; }

 private:
  LossPtr combined(const Json& config);
  LossPtr multi_scale(const Json& config);
  LossPtr time_aggregate(const Json& config);
  LossPtr pointwise(const Json& config, const Json& scalers);
  LossPtr crps(const Json& config, const Json& scalers);
  LossPtr energy(const Json& config, const Json& scalers);
  LossPtr graph_energy(const Json& config, const Json& scalers);
  LossPtr graph_edges(const Json& config, const Json& scalers, train::EdgeScore kind);
  LossPtr spectral(const Json& config, const Json& scalers, train::SpectralKind kind);
  LossPtr spectral_crps(const Json& config, const Json& scalers);

  // Keys that every elementary loss knows, and those of its own.
  void require_keys(const Json& config, std::vector<std::string> own) const;
  ElementaryOptions elementary(const Json& config, const Json& scalers) const;
  std::vector<train::ColumnPair> column_pairs(const Json& config) const;
  train::GraphLossOptions loss_graph(const Json& config, bool self_edges);
  train::SpectralTransform transform(const Json& config);
  train::SparseRowsPtr projection(const Json& config);
  // Notes a matrix; the stored one takes its place if there is one.
  train::SparseRowsPtr used(const train::SparseRowsPtr& matrix) {
    const size_t number = result_.matrices.size();
    result_.matrices.push_back(number < stored_.size() ? stored_[number] : matrix);
    return result_.matrices.back();
  }
  void loosen(double value_limit, double gradient_limit) {
    result_.value_limit = std::max(result_.value_limit, value_limit);
    result_.gradient_limit = std::max(result_.gradient_limit, gradient_limit);
    result_.per_variable_limit = std::max(result_.per_variable_limit, value_limit);
  }

  const LossGrid& grid_;
  const at::Tensor& sample_weights_;
  at::ScalarType dtype_;
  const std::vector<train::SparseRowsPtr>& stored_;
  BuiltLoss result_;
};

double alpha_of(const Json& config, double otherwise) {
  if (config.contains("backend")) {
    const auto backend = config["backend"].get<std::string>();
    if (backend != "stable" && backend != "naive") throw NotSupported("backend " + backend);
  }
  return config.value("alpha", otherwise);
}

// A key that is there and not null.
bool has(const Json& config, const char* key) {
  return config.contains(key) && !config[key].is_null();
}

void Builder::require_keys(const Json& config, std::vector<std::string> own) const {
  for (const char* common : {"class", "scalers", "ignore_nans", "no_autocast",
                             "predicted_variables", "target_variables"}) {
    own.emplace_back(common);
  }
  for (const auto& [key, value] : config.items()) {
    if (std::find(own.begin(), own.end(), key) == own.end()) throw NotSupported("option " + key);
  }
}

// Predicted columns and the dataset columns they are compared with.
std::vector<train::ColumnPair> Builder::column_pairs(const Json& config) const {
  const data::VariableTable& variables = grid_.file.variables;
  const std::vector<std::string> predicted = has(config, "predicted_variables")
                                                 ? texts(config["predicted_variables"])
                                                 : variables.output_names();
  const std::vector<std::string> target =
      has(config, "target_variables") ? texts(config["target_variables"]) : predicted;
  AIFS_CHECK(predicted.size() == target.size(), "predicted and target variables are no pairs");
  const std::vector<std::string>& names = variables.names();
  std::vector<train::ColumnPair> pairs;
  for (size_t i = 0; i < predicted.size(); ++i) {
    const auto found = std::find(names.begin(), names.end(), target[i]);
    const int64_t output = variables.find_output(predicted[i]);
    AIFS_CHECK(found != names.end() && output >= 0, "'", predicted[i], "' against '", target[i],
               "'");
    pairs.push_back({output, found - names.begin()});
  }
  return pairs;
}

ElementaryOptions Builder::elementary(const Json& config, const Json& scalers) const {
  ElementaryOptions options;
  options.columns = column_pairs(config);
  options.ignore_nans = config.value("ignore_nans", false);
  for (const std::string& scaler : selected_scalers(grid_.file, scalers))
    options.scalers.push_back(make_scaler(grid_, scaler, dtype_));
  return options;
}

LossPtr Builder::pointwise(const Json& config, const Json& scalers) {
  const double delta = config.value("delta", 1.0);
  const std::map<std::string, train::PointwiseError> kinds{
      {"MSELoss", train::mse_error()},         {"RMSELoss", train::rmse_error()},
      {"MAELoss", train::mae_error()},         {"HuberLoss", train::huber_error(delta)},
      {"LogCoshLoss", train::logcosh_error()}, {"WeightedMSELoss", train::mse_error()}};
  const auto name = config.at("class").get<std::string>();
  const auto found = kinds.find(name);
  if (found == kinds.end()) throw NotSupported("loss " + name);
  require_keys(config, {"delta"});
  ElementaryOptions options = elementary(config, scalers);
  // A weight per sample comes right after the error, as the first scaler does.
  if (name == "WeightedMSELoss" && sample_weights_.defined()) {
    options.scalers.insert(options.scalers.begin(),
                           {"sample_weights", sample_weights_, {train::kBatch, train::kEnsemble}});
  }
  return std::make_shared<train::PointwiseTerm>(found->second, std::move(options));
}

LossPtr Builder::crps(const Json& config, const Json& scalers) {
  require_keys(config, {"alpha", "backend"});
  return std::make_shared<train::CrpsLoss>(alpha_of(config, 0.95), elementary(config, scalers));
}

LossPtr Builder::energy(const Json& config, const Json& scalers) {
  require_keys(config, {"norm_over", "fair"});
  loosen(0.0, kEnergyGradient);
  const auto over = config.value("norm_over", std::string("spatial"));
  for (const auto& [norm, known] : EnumNames<train::NormOver>::table) {
    if (over == known) {
      return std::make_shared<train::EnergyLoss>(norm, config.value("fair", true),
                                                 elementary(config, scalers));
    }
  }
  throw NotSupported("norm_over " + over);
}

train::GraphLossOptions Builder::loss_graph(const Json& config, bool self_edges) {
  train::GraphLossOptions options;
  if (!has(config, "loss_graph")) return options;
  const Json& json = config["loss_graph"];
  require_known_keys(
      json, {"edges_name", "edge_weight_attribute", "row_normalize", "src_node_weight_attribute"});
  const auto values = [&](const char* key) {
    std::vector<float> list;
    if (!has(json, key)) return list;
    const at::Tensor tensor =
        grid_.read(json[key].get<std::string>(), at::kFloat).reshape({-1}).contiguous();
    const float* data = tensor.const_data_ptr<float>();
    list.assign(data, data + tensor.numel());
    return list;
  };
  const at::Tensor index = grid_.read("edge_index", at::kLong).contiguous();
  const int64_t* data = index.const_data_ptr<int64_t>();
  const int64_t m = index.size(1);
  train::LossGraphEdges edges;
  edges.source.assign(data, data + m);
  edges.target.assign(data + m, data + 2 * m);
  edges.weight = values("edge_weight_attribute");
  edges.source_weight = values("src_node_weight_attribute");
  edges.row_normalise = json.value("row_normalize", false);
  edges.self_edges = self_edges;
  options.graph = used(train::loss_graph(edges, grid_.nodes().num_nodes()));
  options.row_normalise = edges.row_normalise;
  return options;
}

LossPtr Builder::graph_energy(const Json& config, const Json& scalers) {
  require_keys(config, {"fair", "loss_graph"});
  loosen(0.0, kEnergyGradient);
  return std::make_shared<train::GraphEnergyLoss>(config.value("fair", true),
                                                  loss_graph(config, /*self_edges=*/true),
                                                  elementary(config, scalers));
}

LossPtr Builder::graph_edges(const Json& config, const Json& scalers, train::EdgeScore kind) {
  using K = train::EdgeScore;
  require_keys(config, kind == K::kCrps     ? std::vector<std::string>{"alpha", "loss_graph"}
                       : kind == K::kEnergy ? std::vector<std::string>{"fair", "loss_graph"}
                                            : std::vector<std::string>{"fair", "p", "loss_graph"});
  train::EdgeScoreOptions score;
  score.kind = kind;
  score.fair = config.value("fair", true);
  score.alpha = config.value("alpha", 1.0);
  score.p = config.value("p", 1.0);
  loosen(kind == K::kVariogram && score.p == 2.0 ? kVariogramSquareValue : 0.0,
         kind == K::kEnergy ? kEnergyGradient : kExtendedGradient);
  if (kind == K::kVariogram)
    result_.per_variable_limit = std::max(kCancelling, result_.value_limit);
  AIFS_CHECK(has(config, "loss_graph"), "a score of edges needs a graph");
  return std::make_shared<train::GraphEdgeLoss>(score, loss_graph(config, /*self_edges=*/false),
                                                elementary(config, scalers));
}

train::SparseRowsPtr Builder::projection(const Json& config) {
  if (!has(config, "projection_config")) return nullptr;
  const Json& json = config["projection_config"];
  require_known_keys(json, {"node_builder", "num_nearest_neighbours", "sigma"});
  const Json& builder = json.at("node_builder");
  require_known_keys(builder, {"class", "grid"});
  if (builder.at("class") != "ReducedGaussianGridNodes") {
    throw NotSupported("projection to " + builder["class"].get<std::string>());
  }
  const graph::Coordinates grid = graph::gaussian_coordinates(
      graph::parse_gaussian_grid(builder.at("grid").get<std::string>()));
  graph::NodeSet target;
  target.name = "projection";
  target.lat_rad = graph::radians_from_degrees(grid.lat_deg);
  target.lon_rad = graph::radians_from_degrees(grid.lon_deg);
  return used(train::gaussian_smoother(grid_.nodes(), target,
                                       json.at("num_nearest_neighbours").get<int64_t>(),
                                       json.at("sigma").get<double>()));
}

train::SpectralTransform Builder::transform(const Json& config) {
  train::SpectralTransform result;
  const auto name = config.value("transform", std::string("fft2d"));
  const auto& table = EnumNames<train::TransformKind>::table;
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const auto& entry) { return name == entry.second; });
  if (found == table.end()) throw NotSupported("transform " + name);
  result.kind = found->first;
  result.filter = config.value("apply_filter", false);
  if (has(config, "subgrid")) {
    if (!config["subgrid"].is_array()) throw NotSupported("subgrid " + config["subgrid"].dump());
    const auto ends = config["subgrid"].get<std::vector<int64_t>>();
    result.subgrid = {ends.at(0), ends.at(1)};
  }
  if (result.on_sphere()) {
    const bool octahedral = result.kind == train::TransformKind::kOctahedralSht;
    const int64_t rings = octahedral ? config.at("nlat").get<int64_t>() : 640;
    const graph::GaussianGrid grid{
        octahedral ? graph::GaussianKind::kOctahedral : graph::GaussianKind::kClassic, rings / 2};
    const int64_t truncation = has(config, "truncation") ? config["truncation"].get<int64_t>()
                                                         : train::default_truncation(rings);
    result.sphere =
        std::make_shared<const model::SphericalTransform>(grid.row_lengths(), truncation);
  } else {
    result.x_dim = config.at("x_dim").get<int64_t>();
    result.y_dim = config.at("y_dim").get<int64_t>();
  }
  result.projection = projection(config);
  loosen(0.0, kExtendedGradient);
  return result;
}

const std::vector<std::string>& spectral_keys() {
  static const std::vector<std::string> keys{"transform", "nlat",         "truncation",
                                             "x_dim",     "y_dim",        "subgrid",
                                             "grid",      "apply_filter", "projection_config"};
  return keys;
}

LossPtr Builder::spectral(const Json& config, const Json& scalers, train::SpectralKind kind) {
  require_keys(config, spectral_keys());
  train::SpectralTransform of_field = transform(config);
  if (kind == train::SpectralKind::kAmse) result_.per_variable_limit = kCancelling;
  const bool ratio =
      kind == train::SpectralKind::kLogDistance || kind == train::SpectralKind::kCorrelation;
  if (ratio && of_field.on_sphere()) {
    loosen(kNoisyValue, 0.0);
    result_.noisy = true;
    result_.has_gradient = false;
  }
  if (kind == train::SpectralKind::kCorrelation && of_field.kind == train::TransformKind::kDct2d) {
    result_.has_gradient = false;  // real coefficients: the correlation is a sign
  }
  return std::make_shared<train::SpectralLoss>(kind, std::move(of_field),
                                               elementary(config, scalers), "loss");
}

LossPtr Builder::spectral_crps(const Json& config, const Json& scalers) {
  std::vector<std::string> keys = spectral_keys();
  keys.insert(keys.end(), {"alpha", "backend", "coefficient_magnitude"});
  require_keys(config, keys);
  return std::make_shared<train::SpectralCrpsLoss>(
      alpha_of(config, 1.0), config.value("coefficient_magnitude", false), transform(config),
      elementary(config, scalers), "loss");
}

// As the reference, which takes a wrapper's word only where its loss says the same.
void check_wrapper(const Json& wrapper, const Json& loss) {
  if (!wrapper.value("ignore_nans", false) || loss.value("ignore_nans", false)) return;
  throw ConfigError("loss.ignore_nans", "is true of a wrapper and false of the loss in it");
}

LossPtr Builder::combined(const Json& config) {
  require_known_keys(config, {"class", "losses", "loss_weights", "scalers"});
  const Json own_scalers = config.value("scalers", Json::array());
  const Json& losses = config.at("losses");
  AIFS_CHECK(!has(config, "loss_weights") || config["loss_weights"].size() == losses.size(),
             "losses and their weights differ in number");
  std::vector<train::WeightedSum::Part> parts;
  for (size_t i = 0; i < losses.size(); ++i) {
    const double weight =
        has(config, "loss_weights") ? config["loss_weights"].at(i).get<double>() : 1.0;
    parts.push_back({build(losses[i], own_scalers), weight});
  }
  return std::make_shared<train::WeightedSum>(std::move(parts));
}

LossPtr Builder::multi_scale(const Json& config) {
  require_known_keys(config, {"class", "per_scale_loss", "weights", "multiscale_config", "autocast",
                              "ignore_nans", "sparse_projector_num_chunks"});
  std::vector<train::SparseRowsPtr> matrices{nullptr};
  if (has(config, "multiscale_config")) {
    const Json& scales = config["multiscale_config"];
    if (has(scales, "loss_matrices") || has(scales, "loss_matrices_path")) {
      throw NotSupported("smoothers from files");
    }
    std::vector<train::SmootherOptions> smoothers;
    if (has(scales, "smoothers")) {
      require_known_keys(scales, {"smoothers"});
      for (const auto& [name, json] : scales["smoothers"].items()) {
        require_known_keys(json, {"num_nearest_neighbours", "sigma"});
        smoothers.insert(smoothers.begin(), {json.at("num_nearest_neighbours").get<int64_t>(),
                                             json.at("sigma").get<double>()});
      }
    } else {
      require_known_keys(
          scales, {"num_scales", "base_num_nearest_neighbours", "base_sigma", "scale_factor"});
      smoothers = train::smoother_series(scales.at("num_scales").get<int64_t>(),
                                         scales.at("base_num_nearest_neighbours").get<int64_t>(),
                                         scales.at("base_sigma").get<double>(),
                                         scales.value("scale_factor", 2.0));
    }
    matrices = train::smoothers_on(grid_.nodes(), smoothers);
    for (train::SparseRowsPtr& matrix : matrices) {
      if (matrix) matrix = used(matrix);
    }
  }
  check_wrapper(config, config.at("per_scale_loss"));
  loosen(0.0, kExtendedGradient);
  return std::make_shared<train::MultiScaleLoss>(std::move(matrices),
                                                 config.at("weights").get<std::vector<double>>(),
                                                 build(config.at("per_scale_loss"), Json::array()));
}

LossPtr Builder::time_aggregate(const Json& config) {
  require_known_keys(config,
                     {"class", "time_aggregation_types", "scalers", "loss_fn", "ignore_nans"});
  check_wrapper(config, config.at("loss_fn"));
  std::vector<train::TimeAggregate> kinds;
  for (const std::string& name : texts(config.at("time_aggregation_types"))) {
    const auto& table = EnumNames<train::TimeAggregate>::table;
    const auto found = std::find_if(table.begin(), table.end(),
                                    [&](const auto& entry) { return name == entry.second; });
    if (found == table.end()) throw NotSupported("aggregate " + name);
    kinds.push_back(found->first);
  }
  const Json scalers = config.value("scalers", Json::array());
  at::Tensor time_weights;
  for (const std::string& name : selected_scalers(grid_.file, scalers)) {
    const train::Scaler scaler = make_scaler(grid_, name, dtype_);
    if (!scaler.acts_on(train::kTime)) continue;
    const at::Tensor values = scaler.factor.reshape({-1});
    time_weights = time_weights.defined() ? time_weights * values : values;
  }
  return std::make_shared<train::TimeAggregateLoss>(
      std::move(kinds), build(config.at("loss_fn"), scalers), time_weights);
}

LossPtr Builder::build(const Json& config, const Json& inherited_scalers) {
  const auto name = config.at("class").get<std::string>();
  const Json scalers = config.value("scalers", inherited_scalers);
  using train::EdgeScore;
  using train::SpectralKind;
  if (name == "CombinedLoss") return combined(config);
  if (name == "MultiscaleLossWrapper") return multi_scale(config);
  if (name == "TimeAggregateLossWrapper") return time_aggregate(config);
  if (name == "CRPS") return crps(config, scalers);
  if (name == "EnergyScoreLoss") return energy(config, scalers);
  if (name == "GraphEnergyScoreLoss") return graph_energy(config, scalers);
  if (name == "GraphEdgeEnergyScoreLoss") return graph_edges(config, scalers, EdgeScore::kEnergy);
  if (name == "GraphEdgeCRPSLoss") return graph_edges(config, scalers, EdgeScore::kCrps);
  if (name == "GraphVariogramScoreLoss") {
    return graph_edges(config, scalers, EdgeScore::kVariogram);
  }
  if (name == "SpectralAMSELoss") return spectral(config, scalers, SpectralKind::kAmse);
  if (name == "PowerSpectrumLoss") return spectral(config, scalers, SpectralKind::kPower);
  if (name == "LogSpectralDistance" || name == "LogFFT2Distance") {
    return spectral(config, scalers, SpectralKind::kLogDistance);
  }
  if (name == "FourierCorrelationLoss") {
    return spectral(config, scalers, SpectralKind::kCorrelation);
  }
  if (name == "SpectralCRPSLoss") return spectral_crps(config, scalers);
  return pointwise(config, scalers);
}

}  // namespace

BuiltLoss build_case_loss(const LossGrid& grid, const Json& config,
                          const at::Tensor& sample_weights, at::ScalarType dtype,
                          const std::vector<train::SparseRowsPtr>& matrices) {
  Builder builder(grid, sample_weights, dtype, matrices);
  const LossPtr loss = builder.build(config, Json::array());
  builder.result().loss = loss;
  return builder.result();
}

}  // namespace aifs::conformance
