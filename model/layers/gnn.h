// SPDX-License-Identifier: Apache-2.0
// The three parts of the GNN: forward mapper (data -> hidden), processor, backward mapper
// (hidden -> data), as in Anemoi's GNNForwardMapper, GNNProcessor and GNNBackwardMapper.
// Features that do not depend on the sample are embedded once and repeated for all copies.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "model/layers/graph_conv.h"
#include "model/layers/part.h"
#include "model/layers/steps.h"
#include "model/layers/trainable_features.h"
#include "model/nodes/local_edges.h"

namespace aifs::model {

class GnnEncoder : public Encoder {
 public:
  // `scope` is that of the mapper ("encoder.0"), `edge_scope` that of its edge features.
  GnnEncoder(const ParameterScope& scope, const ParameterScope& edge_scope,
             const GraphConvOptions& options, const EdgeTensors& edges, int64_t num_edge_trainable,
             int64_t data_width, int64_t hidden_width);

  // Hands on the data rows embedded and updated, of width C.
  Encoded forward(const at::Tensor& x_data, const at::Tensor& x_hidden,
                  int64_t copies) const override;
  bool takes_filling() const override { return true; }

 private:
  GraphConvOptions options_;
  EdgeFeatures edge_features_;
  Mlp emb_edges_;
  std::unique_ptr<GraphConvBlock> block_;
  Mlp emb_nodes_src_, emb_nodes_dst_;
  std::unique_ptr<LocalEdges> edges_;
  EdgeChunks chunks_;
};

class GnnProcessor : public Processor {
 public:
  GnnProcessor(const ParameterScope& scope, const ParameterScope& edge_scope,
               const GraphConvOptions& options, const EdgeTensors& edges,
               int64_t num_edge_trainable, int64_t num_layers);

  // The state is x and the edge features, which layers update; the latter in ranges of targets.
  // After the last layer edges may be undefined.
  State start(const at::Tensor& x, int64_t copies, const at::Tensor& condition) const override;
  State run(const State& state, int64_t copies) const override;

 private:
  GraphConvOptions options_;
  EdgeFeatures edge_features_;
  Mlp emb_edges_;
  std::vector<GraphConvBlock> blocks_;
  std::unique_ptr<LocalEdges> edges_;
  EdgeChunks ranges_;
  LayerUnits units_;
};

class GnnDecoder : public Decoder {
 public:
  GnnDecoder(const ParameterScope& scope, const ParameterScope& edge_scope,
             const GraphConvOptions& options, const EdgeTensors& edges, int64_t num_edge_trainable,
             int64_t out_width);

  // `data` are rows of width C, as GnnEncoder hands them on.
  at::Tensor forward(const at::Tensor& latent, const at::Tensor& data,
                     int64_t copies) const override;

 private:
  GraphConvOptions options_;
  EdgeFeatures edge_features_;
  Mlp emb_edges_;
  std::unique_ptr<GraphConvBlock> block_;
  Mlp extractor_;
  std::unique_ptr<LocalEdges> edges_;
  EdgeChunks chunks_;
};

}  // namespace aifs::model
