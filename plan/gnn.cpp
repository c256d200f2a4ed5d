// SPDX-License-Identifier: Apache-2.0
#include "plan/layers.h"

namespace aifs::plan {

namespace {

using model::BlockOptions;
using model::RecomputePolicy;

model::MlpOptions mlp_options(const BlockOptions& block, const PartContext& context, int64_t in,
                              int64_t out) {
  return {.in = in,
          .hidden = model::hidden_width(context.channels, block.hidden_ratio()),
          .out = out,
          .extra_layers = block.mlp_extra_layers + 1,
          .layer_norm = true,
          .implementation = block.mlp_implementation,
          .activation = block.activation,
          .kernels = context.kernels};
}

Rows embed(Tape& tape, const BlockOptions& block, const PartContext& context, const Rows& x) {
  const bool again =
      block.recompute == RecomputePolicy::kMlp || block.recompute == RecomputePolicy::kBlock;
  return tape.recomputed(again, {x}, [&] {
    return mlp(tape, mlp_options(block, context, x.width, context.channels), context,
               {MlpInput::Kind::kPlain, x, {}});
  });
}

Rows embedded_edges(Tape& tape, const BlockOptions& block, const PartContext& context,
                    const PartSizes& sizes) {
  const Rows features = tape.make(sizes.edges.edges, sizes.edge_width);
  return tape.repeat(embed(tape, block, context, features), context.copies);
}

struct Messages {
  Rows nodes, edges;
};

// GraphConvBlock of model/layers/graph_conv.h.
Messages messages(Tape& tape, const BlockOptions& block, const PartContext& context,
                  const Rows& target, const Rows& source, const Rows& e) {
  model::MlpOptions options = mlp_options(block, context, 3 * context.channels, context.channels);
  options.hidden = context.channels;
  const bool again = block.recompute == RecomputePolicy::kMlp;
  const Rows sent = tape.recomputed(again, {target, source, e}, [&] {
    return mlp(tape, options, context, {MlpInput::Kind::kEdges, target, source, e}, true);
  });
  const Rows sums = tape.make(target.rows, context.channels);
  tape.move(sent.storage + sums.storage);
  return {sums, sent};
}

Rows update_nodes(Tape& tape, const BlockOptions& block, const PartContext& context, const Rows& x,
                  const Rows& aggregate) {
  const bool again = block.recompute == RecomputePolicy::kMlp;
  return tape.recomputed(again, {x, aggregate}, [&] {
    return mlp(tape, mlp_options(block, context, 2 * context.channels, context.channels), context,
               {MlpInput::Kind::kPair, x, aggregate}, true);
  });
}

Rows update_sources(Tape& tape, const BlockOptions& block, const PartContext& context,
                    const Rows& x) {
  const bool again = block.recompute == RecomputePolicy::kMlp;
  return tape.recomputed(again, {x}, [&] {
    return mlp(tape, mlp_options(block, context, 2 * context.channels, context.channels), context,
               {MlpInput::Kind::kTwice, x, {}}, true);
  });
}

}  // namespace

Encoded gnn_encoder(Tape& tape, const BlockOptions& options, const PartContext& context,
                    const PartSizes& sizes, const Rows& data, const Rows& hidden) {
  Encoded encoded;
  const Rows features = tape.make(sizes.edges.edges, sizes.edge_width);
  const bool again = options.recompute == RecomputePolicy::kFull;
  encoded.latent = tape.recomputed(again, {data, hidden, features}, [&] {
    const Rows e = embedded_edges(tape, options, context, sizes);
    const Rows source = embed(tape, options, context, data);
    const Rows target =
        tape.repeat(mlp(tape, mlp_options(options, context, hidden.width, context.channels),
                        context, {MlpInput::Kind::kPlain, hidden, {}}),
                    context.copies);
    // The same weights as those of update_nodes().
    encoded.data = tape.again([&] { return update_sources(tape, options, context, source); });
    const Rows all = sources(tape, source, sizes.edges, context);
    return over_chunks(tape, options, target, e, {all}, [&](const Rows& some, const Rows& edges) {
      const Messages sent = messages(tape, options, context, some, all, edges);
      return update_nodes(tape, options, context, some, sent.nodes);
    });
  });
  return encoded;
}

Rows gnn_processor(Tape& tape, const BlockOptions& options, const PartContext& context,
                   const PartSizes& sizes, const Rows& x, int64_t layers) {
  const Rows e = embedded_edges(tape, options, context, sizes);
  return run_steps(tape, options, layers, {x, e}, {}, [&](const State& state) -> State {
    const Rows all = sources(tape, state[0], sizes.edges, context);
    const Messages sent = messages(tape, options, context, state[0], all, state[1]);
    return {update_nodes(tape, options, context, state[0], sent.nodes), sent.edges};
  })[0];
}

Rows gnn_decoder(Tape& tape, const BlockOptions& options, const PartContext& context,
                 const PartSizes& sizes, const Rows& latent, const Rows& data, int64_t out) {
  model::MlpOptions extractor = mlp_options(options, context, context.channels, out);
  extractor.layer_norm = false;
  const Rows features = tape.make(sizes.edges.edges, sizes.edge_width);
  const bool again = options.recompute == RecomputePolicy::kFull;
  return tape.recomputed(again, {latent, data, features}, [&] {
    const Rows e = embedded_edges(tape, options, context, sizes);
    const Rows all = sources(tape, latent, sizes.edges, context);
    return over_chunks(tape, options, data, e, {all}, [&](const Rows& some, const Rows& edges) {
      const Messages sent = messages(tape, options, context, some, all, edges);
      const Rows updated = update_nodes(tape, options, context, some, sent.nodes);
      return mlp(tape, extractor, context, {MlpInput::Kind::kPlain, updated, {}});
    });
  });
}

}  // namespace aifs::plan
