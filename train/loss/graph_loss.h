// SPDX-License-Identifier: Apache-2.0
// Ensemble scores that look at each node's neighbourhood on a graph, and at differences along its
// edges. Every rank that shares a sample computes them from the whole field.
#pragma once

#include "train/loss/loss_kind.h"
#include "train/loss/sparse_rows.h"

namespace aifs::train {

// Edges between nodes of the data grid: rows are where an edge ends, columns where it starts.
struct LossGraphEdges {
  std::vector<int64_t> source = {}, target = {};  // (M)
  std::vector<float> weight = {};                 // (M) >= 0; empty: 1 each
  std::vector<float> source_weight = {};          // (N) of the starting node; empty: 1 each
  bool row_normalise = false;  // weights of the edges that end at a node sum to 1
  bool self_edges = true;      // false: edges from a node to itself are left out
};
SparseRowsPtr loss_graph(const LossGraphEdges& edges, int64_t num_nodes);

struct GraphLossOptions {
  SparseRowsPtr graph = {};    // GraphEnergyLoss may do without: each node by itself
  bool row_normalise = false;  // with NaN: weights of what is valid are divided by their sum
};

// Energy score of each node's neighbourhood: the norm of q at node i is sqrt(sum_j A_ij q_j^2).
class GraphEnergyLoss : public ElementaryLoss {
 public:
  GraphEnergyLoss(bool fair, GraphLossOptions graph, ElementaryOptions options)
      : ElementaryLoss(std::move(options)), fair_(fair), graph_(std::move(graph)) {}

 protected:
  at::Tensor value(const Fields& fields) const override;
  bool needs_all_nodes() const override { return graph_.graph != nullptr; }

 private:
  bool fair_;
  GraphLossOptions graph_;
};

// Scores of differences d = x[source] - x[target] along edges, summed at the target with the
// weights of the edges: energy (the norm of a node is sqrt(sum_e A_e d_e^2)), CRPS of each
// difference, and variogram of order p.
enum class EdgeScore { kEnergy, kCrps, kVariogram };

struct EdgeScoreOptions {
  EdgeScore kind = EdgeScore::kEnergy;
  bool fair = true;    // energy, variogram
  double alpha = 1.0;  // CRPS
  double p = 1.0;      // variogram
};

class GraphEdgeLoss : public ElementaryLoss {
 public:
  GraphEdgeLoss(EdgeScoreOptions score, GraphLossOptions graph, ElementaryOptions options)
      : ElementaryLoss(std::move(options)), score_(score), graph_(std::move(graph)) {}

 protected:
  at::Tensor value(const Fields& fields) const override;
  bool needs_all_nodes() const override { return true; }

 private:
  // (M, 1), or with NaN (B, T, 1, M, V): 0 for edges with an end that is not valid.
  at::Tensor edge_weights(const at::Tensor& members, const at::Tensor& truth) const;
  at::Tensor of_edges(const at::Tensor& members, const at::Tensor& truth,
                      const at::Tensor& weight) const;

  EdgeScoreOptions score_;
  GraphLossOptions graph_;
};

// Neighbours on the data grid: nearest nodes, or those at the edges of the graph.
struct LossGraphOptions {
  int64_t neighbours = 4;  // 0: each node by itself
  double sigma = 0.0;      // radians; 0: all neighbours weigh the same
  bool of_graph = false;
  std::string edge_weight;    // of_graph: attribute of edges; empty: 1 each
  std::string source_weight;  // of_graph: attribute of the nodes where edges start; empty: 1 each
  bool row_normalise = true;

  void bind(config::Binder& b);
  // `path` is that of the options here and below.
  void validate(const std::string& path) const;
  bool is_empty() const { return !of_graph && neighbours == 0; }
  // `self_edges`: a node is a neighbour of itself. Throws ConfigError for edges or attributes that
  // the graph does not have.
  GraphLossOptions make(const LossInputs& inputs, bool self_edges, const std::string& path) const;
};

// Describes what the scores of a graph share.
struct GraphScoreKind : LossKind {
  LossGraphOptions graph;

  void bind(config::Binder& b) override;
  bool compares_members() const override { return true; }
};

// A score of edges, of which there must be some.
struct GraphEdgeScoreKind : GraphScoreKind {
  void validate(const std::string& path) const override;
};

struct GraphEnergyScoreKind : GraphScoreKind {
  bool fair = true;
  void bind(config::Binder& b) override;
  LossPtr make(const LossPlace& place) const override;
};

struct GraphEdgeEnergyScoreKind : GraphEdgeScoreKind {
  bool fair = true;
  void bind(config::Binder& b) override;
  LossPtr make(const LossPlace& place) const override;
};

struct GraphEdgeCrpsKind : GraphEdgeScoreKind {
  double alpha = 0.95;
  void bind(config::Binder& b) override;
  LossPtr make(const LossPlace& place) const override;
};

struct GraphVariogramScoreKind : GraphEdgeScoreKind {
  bool fair = true;
  double variogram_power = 1.0;
  void bind(config::Binder& b) override;
  LossPtr make(const LossPlace& place) const override;
};

}  // namespace aifs::train
