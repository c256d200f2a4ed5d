// SPDX-License-Identifier: Apache-2.0
#include "model/network/parts.h"

#include "core/check.h"
#include "model/layers/gnn.h"
#include "model/layers/graph_transformer.h"
#include "model/layers/point_wise.h"

namespace aifs::model {

namespace {

GraphConvOptions gnn_options(const BlockOptions& block, const PartPlace& place, int64_t channels,
                             double eps) {
  return {.channels = channels,
          .hidden = hidden_width(channels, block.hidden_ratio()),
          .extra_layers = block.mlp_extra_layers + 1,
          .implementation = block.mlp_implementation,
          .activation = block.activation,
          .layer_norm_eps = eps,
          .kernels = place.kernels,
          .recompute = block.recompute,
          .chunks = block.chunks,
          .offload = block.offload,
          .edge_ranges = block.edge_ranges};
}

GraphTransformerOptions graph_transformer_options(const BlockOptions& block, int64_t channels,
                                                  const LayerNormOptions& norm) {
  return {.channels = channels,
          .attention_channels = block.attention_channels,
          .heads = block.heads,
          .hidden = hidden_width(channels, block.hidden_ratio()),
          .qk_norm = block.qk_norm,
          .edge_pre_mlp = block.edge_pre_mlp,
          .implementation = block.mlp_implementation,
          .activation = block.activation,
          .norm = norm,
          .qk_norm_eps = block.qk_norm_eps,
          .recompute = block.recompute,
          .chunks = block.chunks,
          .offload = block.offload};
}

TransformerOptions transformer_options(const BlockOptions& block, int64_t channels,
                                       const LayerNormOptions& norm) {
  return {.channels = channels,
          .attention_channels = block.attention_channels,
          .heads = block.heads,
          .hidden = hidden_width(channels, block.hidden_ratio()),
          .window = block.window == 0 ? std::nullopt : std::optional(block.window),
          .backend = block.attention,
          .softcap = block.softcap,
          .alibi = block.alibi,
          .rotary = block.rotary,
          .qk_norm = block.qk_norm,
          .implementation = block.mlp_implementation,
          .activation = block.activation,
          .norm = norm,
          .qk_norm_eps = block.qk_norm_eps,
          .recompute = block.recompute,
          .chunks = block.chunks,
          .offload = block.offload};
}

PointWiseOptions point_wise_options(const BlockOptions& block, int64_t channels,
                                    const LayerNormOptions& norm) {
  return {.channels = channels,
          .hidden = hidden_width(channels, block.hidden_ratio()),
          .activation = block.activation,
          .norm = norm,
          .recompute = block.recompute,
          .chunks = block.chunks,
          .offload = block.offload};
}

const EdgeTensors& edges_of(const PartPlace& place) {
  return place.graph.edges(place.source, place.target);
}

SequenceNodes nodes_of(const PartPlace& place) {
  return {place.graph.nodes(place.source), place.graph.nodes(place.target),
          place.graph.attention()};
}

}  // namespace

int64_t handed_on_width(const BlockOptions& encoder, const MapperWidths& widths) {
  return encoder.kind == BlockKind::kGnn ? widths.channels : widths.source;
}

std::unique_ptr<Encoder> make_encoder(const ParameterScope& scope, const ParameterScope& edge_scope,
                                      const BlockOptions& options, double eps,
                                      const PartPlace& place, const MapperWidths& widths) {
  eps = options.norm_eps.value_or(eps);
  const LayerNormOptions norm{.eps = eps};
  switch (options.kind) {
    case BlockKind::kGnn:
      return std::make_unique<GnnEncoder>(
          scope, edge_scope, gnn_options(options, place, widths.channels, eps), edges_of(place),
          place.edge_trainable, widths.source, widths.target);
    case BlockKind::kGraphTransformer:
      return std::make_unique<GraphTransformerEncoder>(
          scope, edge_scope, graph_transformer_options(options, widths.channels, norm),
          edges_of(place), place.edge_trainable, widths.source, widths.target);
    case BlockKind::kTransformer:
      return std::make_unique<TransformerEncoder>(
          scope, transformer_options(options, widths.channels, norm), widths.source, widths.target,
          nodes_of(place));
    case BlockKind::kPointWise:
      AIFS_CHECK(place.source == place.target, "point-wise from '", place.source, "' to '",
                 place.target, "', which are not the same nodes");
      return std::make_unique<PointWiseEncoder>(
          scope, point_wise_options(options, widths.channels, norm), widths.source);
    case BlockKind::kNone:
      break;
  }
  throw Error("an encoder of kind none");
}

std::unique_ptr<Processor> make_processor(const ParameterScope& scope,
                                          const ParameterScope& edge_scope,
                                          const BlockOptions& options, LayerNormOptions norm,
                                          const PartPlace& place, int64_t channels,
                                          int64_t num_layers) {
  norm.eps = options.norm_eps.value_or(norm.eps);
  switch (options.kind) {
    case BlockKind::kGnn:
      return std::make_unique<GnnProcessor>(scope, edge_scope,
                                            gnn_options(options, place, channels, norm.eps),
                                            edges_of(place), place.edge_trainable, num_layers);
    case BlockKind::kGraphTransformer:
      return std::make_unique<GraphTransformerProcessor>(
          scope, edge_scope, graph_transformer_options(options, channels, norm), edges_of(place),
          place.edge_trainable, num_layers);
    case BlockKind::kTransformer:
      return std::make_unique<TransformerProcessor>(
          scope, transformer_options(options, channels, norm), num_layers, nodes_of(place));
    case BlockKind::kPointWise:
      return std::make_unique<PointWiseProcessor>(
          scope, point_wise_options(options, channels, norm), num_layers);
    case BlockKind::kNone:
      // Anemoi keeps the edge features of a processor that does nothing.
      if (place.graph.has_edges(place.source, place.target)) {
        const EdgeFeatures unused(edge_scope, edges_of(place), place.edge_trainable);
        edge_scope.set().mark_unused(edge_scope.name("trainable."));
      }
      return std::make_unique<NoProcessor>();
  }
  throw Error("an unknown kind of processor");
}

std::unique_ptr<Decoder> make_decoder(const ParameterScope& scope, const ParameterScope& edge_scope,
                                      const BlockOptions& options, bool zero_extractor, double eps,
                                      const PartPlace& place, const MapperWidths& widths) {
  eps = options.norm_eps.value_or(eps);
  const LayerNormOptions norm{.eps = eps};
  switch (options.kind) {
    case BlockKind::kGnn:
      AIFS_CHECK(widths.source == widths.channels && widths.target == widths.channels,
                 "a GNN decoder of width ", widths.channels, " for rows of widths ", widths.source,
                 " and ", widths.target);
      return std::make_unique<GnnDecoder>(scope, edge_scope,
                                          gnn_options(options, place, widths.channels, eps),
                                          edges_of(place), place.edge_trainable, widths.out);
    case BlockKind::kGraphTransformer: {
      GraphTransformerOptions o = graph_transformer_options(options, widths.channels, norm);
      o.zero_extractor = zero_extractor;
      return std::make_unique<GraphTransformerDecoder>(scope, edge_scope, o, edges_of(place),
                                                       place.edge_trainable, widths.source,
                                                       widths.target, widths.out);
    }
    case BlockKind::kTransformer:
      return std::make_unique<TransformerDecoder>(
          scope, transformer_options(options, widths.channels, norm), widths.source, widths.target,
          widths.out, nodes_of(place));
    case BlockKind::kPointWise: {
      PointWiseOptions o = point_wise_options(options, widths.channels, norm);
      o.zero_extractor = zero_extractor;
      return std::make_unique<PointWiseDecoder>(scope, o, widths.source, widths.out);
    }
    case BlockKind::kNone:
      break;
  }
  throw Error("a decoder of kind none");
}

}  // namespace aifs::model
