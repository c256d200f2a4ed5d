// SPDX-License-Identifier: Apache-2.0
#include "train/loss/graph_loss.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "graph/edges/edge_attributes.h"
#include "graph/edges/neighbour_edges.h"
#include "train/loss/ensemble_loss.h"
#include "train/loss/member_pairs.h"

namespace aifs::train {

namespace {

// 1 where truth and all members are numbers, else 0: (B, T, 1, N, V).
at::Tensor validity(const at::Tensor& members, const at::Tensor& truth) {
  const at::Tensor bad =
      at::logical_or(at::isnan(members).any(kEnsemble, /*keepdim=*/true), at::isnan(truth));
  return at::logical_not(bad).to(members.scalar_type());
}

// Returns what the sums of a node are multiplied by so that the weights of its valid entries count
// as all; 0 where there is none.
at::Tensor renormalisation(const at::Tensor& valid_weight) {
  const at::Tensor some = valid_weight > 0;
  return at::where(some, 1.0 / at::where(some, valid_weight, at::ones({}, valid_weight.options())),
                   at::zeros({}, valid_weight.options()));
}

// |d|^p with gradient 0 at 0.
at::Tensor power_of_size(const at::Tensor& d, double p) {
  if (p == 1.0) return d.abs();
  if (p == 2.0) return d.square();
  const at::Tensor size = d.abs(), positive = size > 0;
  return at::where(positive, at::pow(at::where(positive, size, at::ones({}, size.options())), p),
                   at::zeros({}, size.options()));
}

at::Tensor variogram(const at::Tensor& members, const at::Tensor& truth,
                     const EdgeScoreOptions& score) {
  const auto n = static_cast<double>(members.size(kEnsemble));
  AIFS_CHECK(n > 1, "a variogram score of one member");
  const at::Tensor v = power_of_size(members, score.p), v_truth = power_of_size(truth, score.p);
  if (!score.fair) return (v.mean(kEnsemble, /*keepdim=*/true) - v_truth).square();
  // The mean of (v_i - v_y)(v_j - v_y) over i != j: nothing cancels as it does between v_y^2 and
  // the mean of products.
  const at::Tensor d = v - v_truth;
  return (d.sum(kEnsemble, /*keepdim=*/true).square() -
          d.square().sum(kEnsemble, /*keepdim=*/true)) /
         (n * (n - 1.0));
}

}  // namespace

SparseRowsPtr loss_graph(const LossGraphEdges& edges, int64_t num_nodes) {
  std::vector<int64_t> row, column;
  std::vector<float> value;
  for (size_t e = 0; e < edges.source.size(); ++e) {
    if (!edges.self_edges && edges.source[e] == edges.target[e]) continue;
    row.push_back(edges.target[e]);
    column.push_back(edges.source[e]);
    float weight = edges.weight.empty() ? 1.0f : edges.weight.at(e);
    if (!edges.source_weight.empty()) {
      weight *= edges.source_weight.at(static_cast<size_t>(edges.source[e]));
    }
    AIFS_CHECK(weight >= 0.0f, "edge ", e, " of a loss graph weighs ", weight);
    value.push_back(weight);
  }
  if (edges.row_normalise) value = row_normalised(row, value, num_nodes);
  return std::make_shared<const SparseRows>(row, column, value, num_nodes, num_nodes);
}

at::Tensor GraphEnergyLoss::value(const Fields& fields) const {
  const double c = pair_coefficient(fields.prediction.size(kEnsemble), fair_ ? 1.0 : 0.0);
  auto [members, truth] = std::pair(fields.prediction, fields.target);
  at::Tensor factor;
  if (ignore_nans()) {
    factor = validity(members, truth);
    std::tie(members, truth) = without_nans(members, truth);
    if (graph_.graph && graph_.row_normalise) {
      factor = factor * renormalisation(graph_.graph->apply(factor)).sqrt();
    }
  }
  const Distance norm = [graph = graph_.graph](const at::Tensor& q) {
    return graph ? safe_sqrt(graph->apply(q.square())) : q.abs();
  };
  at::Tensor score = kernel_score(members, truth, c, norm);
  if (factor.defined()) score = score * factor;
  return reduce_field(apply_scalers(score, fields.scalers, fields.nodes), fields.over_variables,
                      fields.nodes);
}

at::Tensor GraphEdgeLoss::edge_weights(const at::Tensor& members, const at::Tensor& truth) const {
  const at::Device device = members.device();
  const at::Tensor source = graph_.graph->columns().to(device);
  const at::Tensor target = graph_.graph->rows().to(device);
  const at::Tensor weight = graph_.graph->values().to(device, members.scalar_type()).unsqueeze(-1);
  if (!ignore_nans()) return weight;
  const at::Tensor valid = validity(members, truth);
  const at::Tensor kept =
      weight * valid.index_select(kGrid, source) * valid.index_select(kGrid, target);
  if (!graph_.row_normalise) return kept;
  const at::Tensor sums = at::zeros_like(valid).index_add(kGrid, target, kept);
  return kept * renormalisation(sums).index_select(kGrid, target);
}

at::Tensor GraphEdgeLoss::of_edges(const at::Tensor& members, const at::Tensor& truth,
                                   const at::Tensor& weight) const {
  // Copies: the backward pass calls these again.
  const at::Device device = members.device();
  const at::Tensor all_targets = graph_.graph->rows().to(device);
  const auto differences = [source = graph_.graph->columns().to(device),
                            target = all_targets](const at::Tensor& x) {
    return x.index_select(kGrid, source) - x.index_select(kGrid, target);
  };
  const auto at_targets = [weight, target = all_targets,
                           nodes = graph_.graph->num_rows()](const at::Tensor& edge_values) {
    std::vector<int64_t> shape = edge_values.sizes().vec();
    shape[kGrid] = nodes;
    return at::zeros(shape, edge_values.options()).index_add(kGrid, target, edge_values * weight);
  };
  const int64_t n = members.size(kEnsemble);
  switch (score_.kind) {
    case EdgeScore::kEnergy: {
      const Distance norm = [differences, at_targets](const at::Tensor& q) {
        return safe_sqrt(at_targets(differences(q).square()));
      };
      return kernel_score(members, truth, pair_coefficient(n, score_.fair ? 1.0 : 0.0), norm);
    }
    case EdgeScore::kCrps: {
      const Distance size = [differences, at_targets](const at::Tensor& q) {
        return at_targets(differences(q).abs());
      };
      return kernel_score(members, truth, pair_coefficient(n, score_.alpha), size);
    }
    case EdgeScore::kVariogram:
      return at_targets(variogram(differences(members), differences(truth), score_));
  }
  throw Error("no such edge score");
}

at::Tensor GraphEdgeLoss::value(const Fields& fields) const {
  auto [members, truth] = std::pair(fields.prediction, fields.target);
  const at::Tensor weight = edge_weights(members, truth);
  if (ignore_nans()) std::tie(members, truth) = without_nans(members, truth);
  const at::Tensor score = of_edges(members, truth, weight);
  return reduce_field(apply_scalers(score, fields.scalers, fields.nodes), fields.over_variables,
                      fields.nodes);
}

// --------------------------------------------------------------------------------- options ---

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

namespace {

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

LossGraphEdges nearest_edges(const LossGraphOptions& options, const graph::NodeSet& nodes) {
  const graph::EdgeList list =
      graph::knn_edges(nodes, nodes, options.neighbours, /*num_threads=*/0);
  LossGraphEdges edges;
  edges.source.assign(list.source_index.begin(), list.source_index.end());
  edges.target.assign(list.target_index.begin(), list.target_index.end());
  if (options.sigma > 0.0) {
    const graph::EdgeEnds ends{.source = nodes,
                               .target = nodes,
                               .source_index = list.source_index,
                               .target_index = list.target_index,
                               .num_threads = 0};
    edges.weight = graph::gaussian_distance_weights<float>(ends, options.sigma);
  }
  return edges;
}

}  // namespace

GraphLossOptions LossGraphOptions::make(const LossInputs& inputs, bool self_edges,
                                        const std::string& path) const {
  if (is_empty()) return {};
  LossGraphEdges edges =
      of_graph ? edges_of_graph(*this, inputs, path) : nearest_edges(*this, inputs.nodes);
  edges.row_normalise = row_normalise;
  edges.self_edges = self_edges;
  return {inputs.used(loss_graph(edges, inputs.nodes.num_nodes())), row_normalise};
}

namespace {

LossPtr make_edge_loss(const EdgeScoreOptions& score, const LossGraphOptions& graph,
                       const LossPlace& place) {
  return std::make_shared<GraphEdgeLoss>(
      score, graph.make(place.inputs, /*self_edges=*/false, place.path + ".graph"),
      place.elementary(0));
}

}  // namespace

void GraphScoreKind::bind(config::Binder& b) {
  b.section("graph", graph, {"neighbourhoods of graph scores"});
}

void GraphEdgeScoreKind::validate(const std::string& path) const {
  if (graph.is_empty())
    throw ConfigError(path + ".graph.neighbours", "differences along edges need neighbours");
}

void GraphEnergyScoreKind::bind(config::Binder& b) {
  bind_fair(b, fair);
  GraphScoreKind::bind(b);
}

LossPtr GraphEnergyScoreKind::make(const LossPlace& place) const {
  return std::make_shared<GraphEnergyLoss>(
      fair, graph.make(place.inputs, /*self_edges=*/true, place.path + ".graph"),
      place.elementary(0));
}

void GraphEdgeEnergyScoreKind::bind(config::Binder& b) {
  bind_fair(b, fair);
  GraphScoreKind::bind(b);
}

LossPtr GraphEdgeEnergyScoreKind::make(const LossPlace& place) const {
  return make_edge_loss({.kind = EdgeScore::kEnergy, .fair = fair}, graph, place);
}

void GraphEdgeCrpsKind::bind(config::Binder& b) {
  bind_alpha(b, alpha);
  GraphScoreKind::bind(b);
}

LossPtr GraphEdgeCrpsKind::make(const LossPlace& place) const {
  return make_edge_loss({.kind = EdgeScore::kCrps, .alpha = alpha}, graph, place);
}

void GraphVariogramScoreKind::bind(config::Binder& b) {
  bind_fair(b, fair);
  b.number("variogram_power", variogram_power, {.min = 1e-3}, {"power of the differences"});
  GraphScoreKind::bind(b);
}

LossPtr GraphVariogramScoreKind::make(const LossPlace& place) const {
  return make_edge_loss({.kind = EdgeScore::kVariogram, .fair = fair, .p = variogram_power}, graph,
                        place);
}

}  // namespace aifs::train
