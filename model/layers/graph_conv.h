// SPDX-License-Identifier: Apache-2.0
// Message passing of the GNN (Anemoi's GraphConv and its processor block):
//   m = edge_mlp([x_target | x_source | e]) + e      new edge state, residual
//   a = sum of m over the edges that end at a node
//   x' = node_mlp([x | a]) + x
#pragma once

#include "model/layers/mlp.h"
#include "model/layers/steps.h"

namespace aifs::model {

// Depth, width and kind of the MLPs of a GNN part.
struct GraphConvOptions {
  int64_t channels = 0;
  int64_t hidden = 0;        // width of node and embedding MLPs; the edge MLP always has `channels`
  int64_t extra_layers = 1;  // linears per MLP less two
  MlpImplementation implementation = MlpImplementation::kMlp;
  Activation activation = Activation::kGelu;
  double layer_norm_eps = 1e-5;
  KernelChoice kernels = KernelChoice::kAuto;
  RecomputePolicy recompute = RecomputePolicy::kNone;
  int64_t chunks = 1;       // mappers: ranges of targets; processors: groups of blocks under kFull
  int64_t offload = 0;      // processors: inputs of blocks or groups that are kept on the host
  int64_t edge_ranges = 1;  // processors: ranges of targets in each block, run again one by one

  MlpOptions mlp(int64_t in, int64_t out) const;
};

// Returns what MLPs that are one operation, and are not run again, keep of their hidden layers:
// whoever runs single MLPs again is short of memory.
Keep kept_hidden(RecomputePolicy recompute);

struct NodeAndEdgeState {
  at::Tensor nodes;  // (N, C)
  at::Tensor edges;  // (M, C)
  // x_target, to be used in its place from there on: gradients of both uses are added up on the
  // way. The same for x_source, where it is wanted so.
  at::Tensor targets = {}, sources = {};
};

class GraphConvBlock {
 public:
  // Registers node_mlp... and conv.edge_mlp... under `scope`.
  GraphConvBlock(const ParameterScope& scope, const GraphConvOptions& options);

  // Edge state after the message (undefined if it is not wanted and the MLP is fused), and its sum
  // at the targets. With `sources_again` x_source, another tensor than x_target, is handed on.
  NodeAndEdgeState messages(const at::Tensor& x_target, const at::Tensor& x_source,
                            const at::Tensor& e, const EdgeIndexPtr& edges,
                            bool edges_wanted = true, bool sources_again = false) const;
  // Sends messages between nodes of one set that are divided over ranks: `x` are own rows, others
  // come by `halo` meanwhile, for so many copies of the graph. Only where takes_halo().
  NodeAndEdgeState messages(const at::Tensor& x, const at::Tensor& e, const EdgeIndexPtr& edges,
                            const std::shared_ptr<parallel::OverlappedExchange>& halo,
                            int64_t copies, bool edges_wanted) const;
  bool takes_halo(const at::Tensor& x) const { return edge_mlp_.is_fused(x); }
  // Sends them where ranges of targets share x_source: `shared` is shared_sources(x_source), of
  // which a product with the MLP's first weight is done once, if it is fused.
  NodeAndEdgeState messages_from(const at::Tensor& shared, const at::Tensor& x_target,
                                 const at::Tensor& e, const EdgeIndexPtr& edges,
                                 bool edges_wanted = true) const;
  at::Tensor shared_sources(const at::Tensor& x_source) const;
  // node_mlp([x | aggregate]) + x.
  at::Tensor update_nodes(const at::Tensor& x, const at::Tensor& aggregate) const;
  // node_mlp([x | x]) + x: what the encoder does with its sources.
  at::Tensor update_sources(const at::Tensor& x) const;

 private:
  NodeAndEdgeState send(FusedMlpPlan plan, const TensorList& rows) const;
  // Runs an MLP as `plan`, or else by `plain`; under kMlp, with less kept than otherwise.
  TensorList run(const Mlp& mlp, FusedMlpPlan plan, const TensorList& rows,
                 const std::function<at::Tensor(const TensorList&)>& plain) const;

  bool recompute_mlps_;
  Keep hidden_;  // of fused MLPs
  Mlp node_mlp_, edge_mlp_;
};

}  // namespace aifs::model
