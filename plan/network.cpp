// SPDX-License-Identifier: Apache-2.0
#include "plan/network.h"

#include <algorithm>

#include "core/check.h"
#include "core/shares.h"

namespace aifs::plan {

namespace {

using model::BlockKind;

constexpr int64_t kCoordinateWidth = 4;

// Widths of the rows that enter the parts.
struct Widths {
  int64_t data = 0, hidden = 0, target = 0, out = 0;
};

Widths widths_of(const NetworkInput& in) {
  const model::TrainableOptions& trainable = in.model.trainable_parameters;
  Widths w;
  w.data = in.times_in * (in.prognostic + in.forcing) + kCoordinateWidth + trainable.data;
  w.hidden = kCoordinateWidth + trainable.hidden;
  w.out = in.times_out * (in.prognostic + in.diagnostic);
  for (const model::TargetFeature feature : in.model.decoder.features()) {
    switch (feature) {
      case model::TargetFeature::kEncodedData:
        w.target +=
            in.model.encoder.kind == BlockKind::kGnn ? in.model.width(in.model.encoder) : w.data;
        break;
      case model::TargetFeature::kCoordinates:
        w.target += kCoordinateWidth;
        break;
      case model::TargetFeature::kForcings:
        w.target += in.times_in * in.forcing;
        break;
      case model::TargetFeature::kPrognostics:
        w.target += in.times_in * in.prognostic;
        break;
      case model::TargetFeature::kTrainable:
        w.target += trainable.data;
        break;
    }
  }
  return w;
}

Types types_of(const NetworkInput& in) {
  Types types = in.types;
  types.own_kernels = in.gpu && in.model.kernels != model::KernelChoice::kReference &&
                      types.activation == 2 && types.weight == 4;
  return types;
}

class Walk {
 public:
  Walk(const NetworkInput& in, const RankRows& rows, bool divided, int64_t tensor,
       NetworkCost& cost)
      : in_(in),
        m_(in.model),
        rows_(rows),
        w_(widths_of(in)),
        tensor_(tensor),
        tape_(types_of(in)),
        cost_(cost) {
    context_ = {
        .copies = in.copies, .divided = divided, .gpu = in.gpu, .kernels = in.model.kernels};
  }

  void run(const Stage& stage) {
    const bool whole_mesh = m_.encoder.kind != BlockKind::kPointWise;
    const int64_t nodes = whole_mesh ? rows_.hidden : rows_.data;
    tape_.enter(cost_.features);
    add_features(stage);
    Rows latent = tape_.make(nodes * in_.copies, m_.width(m_.processor));
    Rows data = tape_.make(rows_.data * in_.copies, w_.target);
    if (stage.encoder) {
      tape_.enter(cost_.encoder);
      const Encoded encoded = encode();
      latent = encoded.latent;
      const bool handed_on = m_.decoder.features().front() == model::TargetFeature::kEncodedData;
      if (handed_on) data = encoded.data;
    }
    tape_.enter(cost_.processor);
    const Rows processed = process(latent, stage);
    cost_.to_next = processed.storage;
    if (stage.layers > 0) {
      cost_.to_next += edge_rows().storage;
      if (m_.latent_skip) cost_.to_next += latent.storage;
    }
    cost_.to_last = data.storage;
    // The gradient of what the decoder is handed waits for that of the encoder.
    if (m_.encoder.kind == BlockKind::kGnn) tape_.hold(data.storage);
    if (m_.latent_skip) {
      tape_.hold(latent.storage);
      latent = tape_.add(processed, latent);
    } else {
      latent = processed;
    }
    if (stage.decoder) {
      tape_.enter(cost_.decoder);
      const Rows decoded = decode(latent, data);
      tape_.enter(cost_.output);
      add_output(decoded);
    }
    cost_.peak = tape_.peak();
  }

 private:
  void add_features(const Stage& stage) {
    const model::TrainableOptions& trainable = m_.trainable_parameters;
    const auto learnt = [&](int64_t rows, int64_t width) {
      if (width > 0) tape_.parameter(rows * width);
    };
    const auto has_edges = [](const model::BlockOptions& block) {
      return block.kind == BlockKind::kGnn || block.kind == BlockKind::kGraphTransformer;
    };
    if (stage.encoder) {
      learnt(in_.totals.data, trainable.data);
      if (m_.encoder.kind != BlockKind::kPointWise) learnt(in_.totals.hidden, trainable.hidden);
      if (has_edges(m_.encoder)) learnt(in_.totals.encoder_edges, trainable.data_to_hidden);
    }
    if (stage.starts && (has_edges(m_.processor) || m_.processor.kind == BlockKind::kNone))
      learnt(in_.totals.processor_edges, trainable.hidden_to_hidden);
    if (stage.decoder && has_edges(m_.decoder))
      learnt(in_.totals.decoder_edges, trainable.hidden_to_data);
  }

  const PartContext& context(const model::BlockOptions& block) {
    context_.channels = m_.width(block);
    context_.tensor = &block == &m_.processor ? tensor_ : 1;
    const EdgeRows& rows = &block == &m_.encoder     ? rows_.encoder
                           : &block == &m_.processor ? rows_.processor
                                                     : rows_.decoder;
    context_.attention = rows.attention ? &*rows.attention : nullptr;
    return context_;
  }

  Encoded encode() {
    const Rows data = tape_.make(rows_.data * in_.copies, w_.data);
    tape_.move(2.0 * data.storage);
    const Rows hidden = tape_.make(rows_.hidden, w_.hidden);
    const model::BlockOptions& block = m_.encoder;
    const PartSizes sizes{rows_.encoder,
                          in_.edge_attributes + m_.trainable_parameters.data_to_hidden};
    switch (block.kind) {
      case BlockKind::kGnn:
        return gnn_encoder(tape_, block, context(block), sizes, data, hidden);
      case BlockKind::kGraphTransformer:
        return graph_transformer_encoder(tape_, block, context(block), sizes, data, hidden);
      case BlockKind::kTransformer:
        return transformer_encoder(tape_, block, context(block), data, hidden);
      case BlockKind::kPointWise:
        return point_wise_encoder(tape_, context(block), data);
      case BlockKind::kNone:
        break;
    }
    throw Error("an encoder of kind none");
  }

  // Of the processor, as stages hand them on: embedded in a GNN, as they are in a GraphTransformer.
  Rows edge_rows() {
    const int64_t edges = rows_.processor.edges;
    if (m_.processor.kind == BlockKind::kGnn)
      return tape_.make(edges * in_.copies, m_.width(m_.processor));
    if (m_.processor.kind == BlockKind::kGraphTransformer)
      return tape_.make(edges, in_.edge_attributes + m_.trainable_parameters.hidden_to_hidden);
    return {};
  }

  Rows process(const Rows& x, const Stage& stage) {
    const int64_t layers = stage.layers;
    const model::BlockOptions& block = m_.processor;
    const PartSizes sizes{rows_.processor,
                          in_.edge_attributes + m_.trainable_parameters.hidden_to_hidden};
    if (layers == 0) return x;
    switch (block.kind) {
      case BlockKind::kGnn:
        return gnn_processor(tape_, block, context(block), sizes, x,
                             stage.starts ? Rows() : edge_rows(), layers);
      case BlockKind::kGraphTransformer:
        return graph_transformer_processor(tape_, block, context(block), sizes, x, layers);
      case BlockKind::kTransformer:
        return transformer_processor(tape_, block, context(block), x, layers);
      case BlockKind::kPointWise:
        return point_wise_processor(tape_, block, context(block), x, layers);
      case BlockKind::kNone:
        break;
    }
    return x;
  }

  Rows decode(const Rows& latent, const Rows& data) {
    const model::BlockOptions& block = m_.decoder;
    const PartSizes sizes{rows_.decoder,
                          in_.edge_attributes + m_.trainable_parameters.hidden_to_data};
    switch (block.kind) {
      case BlockKind::kGnn:
        return gnn_decoder(tape_, block, context(block), sizes, latent, data, w_.out);
      case BlockKind::kGraphTransformer:
        return graph_transformer_decoder(tape_, block, context(block), sizes, latent, data, w_.out);
      case BlockKind::kTransformer:
        return transformer_decoder(tape_, block, context(block), latent, data, w_.out);
      case BlockKind::kPointWise:
        return point_wise_decoder(tape_, latent, w_.out);
      case BlockKind::kNone:
        break;
    }
    throw Error("a decoder of kind none");
  }

  // The prediction in the type of the weights, its residual, and a squared error of it.
  void add_output(const Rows& decoded) {
    const Rows field = tape_.make(decoded.rows, decoded.width, tape_.types().weight);
    constexpr double kPasses = 8.0;  // conversion, residual, bounding, error, two scalers, sum
    tape_.move(kPasses * field.storage);
    tape_.save(field);
    tape_.transient(2.0 * field.storage);
  }

  const NetworkInput& in_;
  const model::ModelOptions& m_;
  const RankRows& rows_;
  Widths w_;
  int64_t tensor_;
  PartContext context_;
  Tape tape_;
  NetworkCost& cost_;
};

}  // namespace

GraphTotals GraphTotals::of(const graph::Graph& graph) {
  return {graph.nodes("data").num_nodes(), graph.nodes("hidden").num_nodes(),
          graph.edges("data", "hidden").num_edges(), graph.edges("hidden", "hidden").num_edges(),
          graph.edges("hidden", "data").num_edges()};
}

void NetworkInput::check() const {
  const auto refuse = [](const char* path, const char* what) {
    throw ConfigError(path, concat("there is no plan for ", what));
  };
  if (!model.hierarchy.meshes.empty()) refuse("model.hierarchy", "a hierarchy of meshes");
  if (model.ensemble.noise != model::NoiseKind::kNone)
    refuse("model.ensemble.noise", "an ensemble with noise");
  if (model.residual.kind != model::ResidualKind::kSkip &&
      model.residual.kind != model::ResidualKind::kNone)
    refuse("model.residual.kind", "a residual other than skip and none");
}

std::vector<Stage> Stage::pipeline(const std::vector<int64_t>& layers, int64_t batches) {
  std::vector<Stage> result;
  for (const int64_t share : layers) {
    const auto after = static_cast<int64_t>(layers.size() - result.size());
    const bool starts = share > 0 && (result.empty() || result.back().layers == 0);
    result.push_back({result.empty(), false, share, std::min(after, batches), starts});
  }
  result.back().decoder = true;
  return result;
}

int64_t NetworkCost::parameters() const {
  int64_t sum = 0;
  for (const PartCost* part : parts())
    sum += part->parameters;
  return sum;
}

int64_t NetworkCost::flat_elements() const {
  int64_t sum = 0;
  for (const PartCost* part : parts())
    sum += part->flat_elements;
  return sum;
}

double NetworkCost::saved() const {
  double sum = 0.0;
  for (const PartCost* part : parts())
    sum += part->saved;
  return sum;
}

NetworkCost network_cost(const NetworkInput& input, const RankRows& rows, bool divided,
                         const Stage& stage, int64_t tensor) {
  NetworkCost cost;
  Walk(input, rows, divided, tensor, cost).run(stage);
  const auto elements = [](const PartCost& part, int64_t pieces) {
    return static_cast<double>(part.flat_elements) /
           static_cast<double>(std::max<int64_t>(1, pieces));
  };
  cost.largest_part = std::max({elements(cost.encoder, 1), elements(cost.decoder, 1),
                                elements(cost.processor, stage.layers)});
  return cost;
}

}  // namespace aifs::plan
