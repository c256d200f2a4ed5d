// SPDX-License-Identifier: Apache-2.0
#include "plan/network.h"

#include <algorithm>
#include <set>

#include "core/check.h"
#include "core/shares.h"
#include "model/nodes/latlon_rows.h"

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
  const int64_t step_input = in.model.ensemble.noise == model::NoiseKind::kNone ? 0 : 1;
  w.data = in.times_in * (in.prognostic + in.forcing) + kCoordinateWidth +
           trainable.of_data("data") + step_input;
  w.hidden = kCoordinateWidth + trainable.of_mesh(in.model.meshes().front());
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
        w.target += trainable.of_data("data");
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

bool has_edges(const model::BlockOptions& block) {
  return block.kind == BlockKind::kGnn || block.kind == BlockKind::kGraphTransformer;
}

Encoded encode(Tape& tape, const model::BlockOptions& block, const PartContext& context,
               const PartSizes& sizes, const Rows& sources, const Rows& targets) {
  switch (block.kind) {
    case BlockKind::kGnn:
      return gnn_encoder(tape, block, context, sizes, sources, targets);
    case BlockKind::kGraphTransformer:
      return graph_transformer_encoder(tape, block, context, sizes, sources, targets);
    case BlockKind::kTransformer:
      return transformer_encoder(tape, block, context, sources, targets);
    case BlockKind::kPointWise:
      return point_wise_encoder(tape, context, sources);
    case BlockKind::kNone:
      break;
  }
  throw Error("an encoder of kind none");
}

// `edges` as those of gnn_processor().
Rows process(Tape& tape, const model::BlockOptions& block, const PartContext& context,
             const PartSizes& sizes, const Rows& x, const Rows& edges, int64_t layers) {
  if (layers == 0) return x;
  switch (block.kind) {
    case BlockKind::kGnn:
      return gnn_processor(tape, block, context, sizes, x, edges, layers);
    case BlockKind::kGraphTransformer:
      return graph_transformer_processor(tape, block, context, sizes, x, layers);
    case BlockKind::kTransformer:
      return transformer_processor(tape, block, context, x, layers);
    case BlockKind::kPointWise:
      return point_wise_processor(tape, block, context, x, layers);
    case BlockKind::kNone:
      break;
  }
  return x;
}

Rows decode(Tape& tape, const model::BlockOptions& block, const PartContext& context,
            const PartSizes& sizes, const Rows& latent, const Rows& targets, int64_t out) {
  switch (block.kind) {
    case BlockKind::kGnn:
      return gnn_decoder(tape, block, context, sizes, latent, targets, out);
    case BlockKind::kGraphTransformer:
      return graph_transformer_decoder(tape, block, context, sizes, latent, targets, out);
    case BlockKind::kTransformer:
      return transformer_decoder(tape, block, context, latent, targets, out);
    case BlockKind::kPointWise:
      return point_wise_decoder(tape, latent, out);
    case BlockKind::kNone:
      break;
  }
  throw Error("a decoder of kind none");
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
    context_ = {.copies = in.copies,
                .divided = divided,
                .gpu = in.gpu,
                .wide = in.types.activation == 4,
                .kernels = in.model.kernels};
    cost.levels.resize(rows.coarser.size());
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
      const Encoded encoded = encode_data();
      latent = encoded.latent;
      const bool handed_on = m_.decoder.features().front() == model::TargetFeature::kEncodedData;
      if (handed_on) data = encoded.data;
    }
    const std::vector<Left> left = go_down(latent);
    tape_.enter(cost_.processor);
    const Rows processed = process_coarsest(latent, stage);
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
    latent = go_up(left, latent);
    if (stage.decoder) {
      tape_.enter(cost_.decoder);
      const Rows decoded =
          decode(tape_, m_.decoder, context(m_.width(m_.decoder), rows_.decoder),
                 sizes(rows_.decoder, m_.decoder_features()), latent, data, w_.out);
      tape_.enter(cost_.output);
      add_output(decoded);
    }
    cost_.peak = tape_.peak();
  }

 private:
  // Describes what a finer mesh keeps for the way up.
  struct Left {
    Rows skip, handed_on;
    double storage() const { return skip.storage + handed_on.storage; }
  };

  void add_features(const Stage& stage) {
    const model::TrainableOptions& trainable = m_.trainable_parameters;
    const model::HierarchyOptions& hierarchy = m_.hierarchy;
    const GraphTotals& totals = in_.totals;
    const auto learnt = [&](int64_t rows, int64_t width) {
      if (width > 0) tape_.parameter(rows * width);
    };
    const auto of_edges = [&](const model::BlockOptions& block, int64_t edges, int64_t width) {
      if (has_edges(block) || block.kind == BlockKind::kNone) learnt(edges, width);
    };
    if (stage.encoder) {
      learnt(totals.data, trainable.of_data("data"));
      if (m_.encoder.kind != BlockKind::kPointWise) learnt(totals.hidden, hidden_features(0));
      of_edges(m_.encoder, totals.encoder_edges, m_.encoder_features());
    }
    // Edges within a mesh are those of the coarsest one's processor, or of two on a finer one.
    int64_t within = totals.processor_edges;
    for (size_t i = 0; i < totals.coarser.size(); ++i) {
      const MeshTotals& mesh = totals.coarser[i];
      for (int way = 0; way < 2 && hierarchy.level_processing; ++way)
        of_edges(m_.processor, within, m_.processor_features());
      within = mesh.within;
      learnt(mesh.nodes, hidden_features(i + 1));
      of_edges(hierarchy.upscale, mesh.up, m_.upscale_features());
      of_edges(hierarchy.downscale, mesh.down, m_.downscale_features());
    }
    if (stage.starts) of_edges(m_.processor, within, m_.processor_features());
    if (stage.decoder) of_edges(m_.decoder, totals.decoder_edges, m_.decoder_features());
  }

  // Returns the context of a mapper.
  PartContext context(int64_t channels, const EdgeRows& edges) const {
    PartContext context = context_;
    context.channels = channels;
    context.attention = edges.attention ? &*edges.attention : nullptr;
    return context;
  }
  PartContext processor_context(int64_t channels, const EdgeRows& edges) const {
    PartContext of_processor = context(channels, edges);
    of_processor.tensor = tensor_;
    return of_processor;
  }
  // Learnt features per node of a mesh, from fine to coarse.
  int64_t hidden_features(size_t mesh) const {
    return m_.trainable_parameters.of_mesh(m_.meshes().at(mesh));
  }

  PartSizes sizes(const EdgeRows& edges, int64_t trainable) const {
    return {edges, in_.edge_attributes + trainable};
  }
  PartSizes processor_sizes(const EdgeRows& edges) const {
    return sizes(edges, m_.processor_features());
  }

  Encoded encode_data() {
    const Rows data = tape_.make(rows_.data * in_.copies, w_.data);
    tape_.move(2.0 * data.storage);
    return encode(tape_, m_.encoder, context(m_.width(m_.encoder), rows_.encoder),
                  sizes(rows_.encoder, m_.encoder_features()), data,
                  tape_.make(rows_.hidden, w_.hidden));
  }

  // Edges of the processor as stages hand them on: embedded in a GNN, as they are in a
  // GraphTransformer.
  Rows edge_rows() {
    const int64_t edges = rows_.processor.edges;
    if (m_.processor.kind == BlockKind::kGnn)
      return tape_.make(edges * in_.copies, m_.width(m_.processor));
    if (m_.processor.kind == BlockKind::kGraphTransformer)
      return tape_.make(edges, in_.edge_attributes + m_.processor_features());
    return {};
  }

  const EdgeRows& within(size_t mesh) const {
    return mesh == 0 ? rows_.processor : rows_.coarser[mesh - 1].within;
  }
  int64_t channels_of(size_t mesh) const { return m_.width(m_.processor) << mesh; }

  Rows process_level(const Rows& x, size_t mesh) {
    if (!m_.hierarchy.level_processing) return x;
    return process(tape_, m_.processor, processor_context(channels_of(mesh), within(mesh)),
                   processor_sizes(within(mesh)), x, {}, m_.hierarchy.level_layers);
  }

  // From the finest mesh to the coarsest.
  std::vector<Left> go_down(Rows& latent) {
    const model::HierarchyOptions& hierarchy = m_.hierarchy;
    std::vector<Left> left;
    for (size_t mesh = 0; mesh < rows_.coarser.size(); ++mesh) {
      tape_.enter(cost_.levels[mesh].down);
      const Rows x = process_level(latent, mesh);
      tape_.enter(cost_.levels[mesh].upscale);
      const CoarseRows& coarser = rows_.coarser[mesh];
      const Encoded encoded =
          encode(tape_, hierarchy.upscale, context(channels_of(mesh + 1), coarser.up),
                 sizes(coarser.up, m_.upscale_features()), x,
                 tape_.make(coarser.nodes, kCoordinateWidth + hidden_features(mesh + 1)));
      left.push_back({x, encoded.data});
      tape_.hold(left.back().storage());
      latent = encoded.latent;
    }
    return left;
  }

  Rows process_coarsest(const Rows& x, const Stage& stage) {
    const size_t mesh = rows_.coarser.size();
    PartContext context = processor_context(channels_of(mesh), within(mesh));
    context.ends = stage.decoder;
    if (m_.ensemble.noise != model::NoiseKind::kNone)
      context.condition = noise_condition(tape_, m_.ensemble, rows_.hidden * in_.copies);
    return process(tape_, m_.processor, context, processor_sizes(within(mesh)), x,
                   stage.starts ? Rows() : edge_rows(), stage.layers);
  }

  // And back.
  Rows go_up(const std::vector<Left>& left, Rows latent) {
    const model::HierarchyOptions& hierarchy = m_.hierarchy;
    for (size_t mesh = left.size(); mesh-- > 0;) {
      tape_.enter(cost_.levels[mesh].downscale);
      const EdgeRows& down = rows_.coarser[mesh].down;
      const Rows finer = decode(tape_, hierarchy.downscale, context(channels_of(mesh + 1), down),
                                sizes(down, m_.downscale_features()), latent, left[mesh].handed_on,
                                channels_of(mesh));
      tape_.hold(-left[mesh].storage());
      latent = tape_.add(finer, left[mesh].skip);
      tape_.enter(cost_.levels[mesh].up);
      latent = process_level(latent, mesh);
    }
    return latent;
  }

  // The prediction in the type of the weights, its residual, and a squared error of it.
  void add_output(const Rows& decoded) {
    const Rows field = tape_.make(decoded.rows, decoded.width, tape_.types().weight);
    constexpr double kPasses = 8.0;  // conversion, residual, bounding, error, two scalers, sum
    tape_.move(kPasses * field.storage);
    tape_.save(field);
    tape_.transient(2.0 * field.storage);
    learnt_residual(tape_, m_.residual, {rows_.data, in_.copies, in_.prognostic, in_.totals.rings});
    if (m_.residual.kind != model::ResidualKind::kTruncated) return;
    for (const MatrixSize& matrix : {in_.down, in_.up})
      sparse_product(tape_, matrix, in_.prognostic * in_.copies);
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

GraphTotals GraphTotals::of(const graph::Graph& graph, const std::vector<std::string>& meshes) {
  return of(graph, meshes, [&](const std::string& from, const std::string& to) {
    const graph::EdgeSet* found = find_edges(graph, from, to);
    return found ? found->num_edges() : 0;
  });
}

GraphTotals GraphTotals::of(const graph::Graph& graph, const std::vector<std::string>& meshes,
                            const NumEdges& count) {
  const auto nodes = [&](const std::string& name) { return graph.nodes(name).num_nodes(); };
  const std::string& finest = meshes.front();
  const std::vector<float>& latitudes = graph.nodes("data").lat_rad;
  GraphTotals totals{.data = nodes("data"),
                     .hidden = nodes(finest),
                     .encoder_edges = count("data", finest),
                     .processor_edges = count(finest, finest),
                     .decoder_edges = count(finest, "data")};
  totals.rings = static_cast<int64_t>(std::set<float>(latitudes.begin(), latitudes.end()).size());
  for (size_t i = 1; i < meshes.size(); ++i) {
    const std::string &mesh = meshes[i], &finer = meshes[i - 1];
    totals.coarser.push_back(
        {nodes(mesh), count(mesh, mesh), count(finer, mesh), count(mesh, finer)});
  }
  return totals;
}

void NetworkInput::measure_truncation(const graph::Graph& graph) {
  if (model.residual.kind != model::ResidualKind::kTruncated) return;
  const graph::NodeSet& cells = graph.nodes("data");
  const model::Truncation truncation = model::truncation_of(
      model.residual, model::latlon_rows(cells.lat_rad, cells.lon_rad), "model.residual");
  const auto size = [](const model::SparseMatrix& matrix) -> MatrixSize {
    return {matrix.index->num_targets, matrix.index->num_sources, matrix.index->num_edges};
  };
  down = size(truncation.down);
  up = size(truncation.up);
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

std::vector<const PartCost*> NetworkCost::between_mappers() const {
  std::vector<const PartCost*> list{&processor};
  for (const LevelCost& level : levels) {
    for (const PartCost* part : {&level.down, &level.upscale, &level.downscale, &level.up})
      list.push_back(part);
  }
  return list;
}

std::vector<const PartCost*> NetworkCost::parts() const {
  std::vector<const PartCost*> list = between_mappers();
  list.insert(list.end(), {&features, &encoder, &decoder, &output});
  return list;
}

std::vector<PlacedPart> placed_parts(const NetworkCost& cost, const RankRows& rows) {
  std::vector<PlacedPart> list{{"encoder", cost.encoder, rows.encoder, rows.data, true}};
  int64_t nodes = rows.hidden;
  const EdgeRows* within = &rows.processor;
  for (size_t i = 0; i < cost.levels.size(); ++i) {
    const LevelCost& level = cost.levels[i];
    const CoarseRows& coarser = rows.coarser[i];
    list.push_back({"processor down", level.down, *within, nodes});
    list.push_back({"upscale", level.upscale, coarser.up, nodes, true});
    list.push_back({"downscale", level.downscale, coarser.down, coarser.nodes, true});
    list.push_back({"processor up", level.up, *within, nodes});
    nodes = coarser.nodes;
    within = &coarser.within;
  }
  list.push_back({"processor", cost.processor, *within, nodes});
  list.push_back({"decoder", cost.decoder, rows.decoder, rows.hidden, true});
  return list;
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

double NetworkCost::on_host() const {
  double sum = 0.0;
  for (const PartCost* part : parts())
    sum += part->on_host;
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
  for (const LevelCost& level : cost.levels) {
    cost.largest_part =
        std::max({cost.largest_part, elements(level.upscale, 1), elements(level.downscale, 1)});
  }
  return cost;
}

}  // namespace aifs::plan
