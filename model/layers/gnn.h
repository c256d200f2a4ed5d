// SPDX-License-Identifier: Apache-2.0
// The three parts of the GNN: forward mapper (data -> hidden), processor, backward mapper
// (hidden -> data), as in Anemoi's GNNForwardMapper, GNNProcessor and GNNBackwardMapper.
//
// Node rows carry `copies` replicas of the graph one after another (batch and ensemble); features
// that do not depend on the sample are embedded once and repeated.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "model/layers/graph_conv.h"
#include "model/layers/trainable_features.h"
#include "model/local_edges.h"

namespace aifs::model {

// What an encoder hands on.
struct Encoded {
  at::Tensor data;    // (copies * N_data, C) rows of the data nodes, the decoder's targets
  at::Tensor latent;  // (copies * N_hidden, C)
};

class GnnEncoder {
 public:
  // `scope` is that of the mapper ("encoder.0"), `edge_scope` that of its edge features.
  GnnEncoder(const ParameterScope& scope, const ParameterScope& edge_scope,
             const GraphConvOptions& options, const EdgeTensors& edges, int64_t num_edge_trainable,
             int64_t data_width, int64_t hidden_width);

  // x_data (copies * N_data, data_width), x_hidden (N_hidden, hidden_width) for one copy.
  Encoded forward(const at::Tensor& x_data, const at::Tensor& x_hidden, int64_t copies) const;

 private:
  bool recompute_, recompute_embeddings_;
  EdgeFeatures edge_features_;
  Mlp emb_edges_;
  std::unique_ptr<GraphConvBlock> block_;
  Mlp emb_nodes_src_, emb_nodes_dst_;
  std::unique_ptr<LocalEdges> edges_;
};

class GnnProcessor {
 public:
  GnnProcessor(const ParameterScope& scope, const ParameterScope& edge_scope,
               const GraphConvOptions& options, const EdgeTensors& edges,
               int64_t num_edge_trainable, int64_t num_layers);

  // (copies * N_hidden, C) -> the same shape.
  at::Tensor forward(const at::Tensor& x, int64_t copies) const;

 private:
  bool recompute_, recompute_embeddings_, recompute_messages_;
  EdgeFeatures edge_features_;
  Mlp emb_edges_;
  std::vector<GraphConvBlock> blocks_;
  std::unique_ptr<LocalEdges> edges_;
};

class GnnDecoder {
 public:
  GnnDecoder(const ParameterScope& scope, const ParameterScope& edge_scope,
             const GraphConvOptions& options, const EdgeTensors& edges, int64_t num_edge_trainable,
             int64_t out_width);

  // latent (copies * N_hidden, C), data (copies * N_data, C) -> (copies * N_data, out_width).
  at::Tensor forward(const at::Tensor& latent, const at::Tensor& data, int64_t copies) const;

 private:
  // Successive targets and the edges that end there, numbered from the first of them.
  struct Chunk {
    int64_t num_targets = 0, num_edges = 0;
    EdgeIndexPtr edges;
  };
  at::Tensor forward_chunks(const at::Tensor& latent, const at::Tensor& data, int64_t copies) const;

  bool recompute_, recompute_embeddings_;
  EdgeFeatures edge_features_;
  Mlp emb_edges_;
  std::unique_ptr<GraphConvBlock> block_;
  Mlp extractor_;
  std::unique_ptr<LocalEdges> edges_;
  std::vector<Chunk> chunks_;  // empty: all at once
};

}  // namespace aifs::model
