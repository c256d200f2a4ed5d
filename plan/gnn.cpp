// SPDX-License-Identifier: Apache-2.0
#include "model/layers/graph_conv.h"
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

// An MLP that is run again if wanted: all of it, or the hidden layers of a fused one.
Rows run_mlp(Tape& tape, const model::MlpOptions& options, const PartContext& context,
             const MlpInput& input, const std::vector<Rows>& operands, bool residual, bool again,
             model::Keep kept) {
  const bool fused = is_fused(options, context);
  return tape.recomputed(again && !fused, operands, [&] {
    return mlp(tape, options, context, input, residual, again ? model::Keep::kNothing : kept);
  });
}

Rows embed(Tape& tape, const BlockOptions& block, const PartContext& context, const Rows& x) {
  const bool again =
      block.recompute != RecomputePolicy::kNone && block.recompute != RecomputePolicy::kFull;
  return run_mlp(tape, mlp_options(block, context, x.width, context.channels), context,
                 {MlpInput::Kind::kPlain, x, {}}, {x}, /*residual=*/false, again,
                 model::Keep::kSlope);
}

// Embeds where that is part of what runs again.
Rows embed_here(Tape& tape, const BlockOptions& block, const PartContext& context, const Rows& x) {
  return mlp(tape, mlp_options(block, context, x.width, context.channels), context,
             {MlpInput::Kind::kPlain, x, {}});
}

bool embeds_late(const BlockOptions& block) {
  return block.recompute == RecomputePolicy::kBlock;
}

// Returns what a mapper hands to its chunks: embedded edges, or features that are embedded there.
Rows mapper_edges(Tape& tape, const BlockOptions& block, const PartContext& context,
                  const Rows& features) {
  return tape.repeat(embeds_late(block) ? features : embed(tape, block, context, features),
                     context.copies);
}
Rows edges_of_chunk(Tape& tape, const BlockOptions& block, const PartContext& context,
                    const Rows& edges) {
  return embeds_late(block) ? embed_here(tape, block, context, edges) : edges;
}

struct Messages {
  Rows nodes, edges;
};

// GraphConvBlock of model/layers/graph_conv.h.
model::MlpOptions edge_mlp(const BlockOptions& block, const PartContext& context) {
  model::MlpOptions options = mlp_options(block, context, 3 * context.channels, context.channels);
  options.hidden = context.channels;
  return options;
}

enum class Edges { kWanted, kUnread };  // the new edges themselves, or their sums alone

Messages messages(Tape& tape, const BlockOptions& block, const PartContext& context,
                  const Rows& target, const Rows& source, const Rows& e, Edges wanted,
                  bool sources_multiplied = false, bool halo = false) {
  const model::MlpOptions options = edge_mlp(block, context);
  const MlpInput input{.kind = MlpInput::Kind::kEdges,
                       .a = target,
                       .b = source,
                       .e = e,
                       .sources_multiplied = sources_multiplied && is_fused(options, context),
                       .halo = halo,
                       .rows_wanted = wanted == Edges::kWanted};
  const Rows sent =
      run_mlp(tape, options, context, input, {target, source, e}, /*residual=*/true,
              block.recompute == RecomputePolicy::kMlp, model::kept_hidden(block.recompute));
  const Rows sums = tape.make(target.rows, context.channels);
  tape.move(sent.storage + sums.storage);
  return {sums, sent};
}

Rows update_nodes(Tape& tape, const BlockOptions& block, const PartContext& context, const Rows& x,
                  const Rows& aggregate) {
  return run_mlp(tape, mlp_options(block, context, 2 * context.channels, context.channels), context,
                 {MlpInput::Kind::kPair, x, aggregate}, {x, aggregate}, /*residual=*/true,
                 block.recompute == RecomputePolicy::kMlp, model::kept_hidden(block.recompute));
}

Rows update_sources(Tape& tape, const BlockOptions& block, const PartContext& context,
                    const Rows& x) {
  return run_mlp(tape, mlp_options(block, context, 2 * context.channels, context.channels), context,
                 {MlpInput::Kind::kTwice, x, {}}, {x}, /*residual=*/true,
                 block.recompute == RecomputePolicy::kMlp, model::kept_hidden(block.recompute));
}

}  // namespace

Encoded gnn_encoder(Tape& tape, const BlockOptions& options, const PartContext& context,
                    const PartSizes& sizes, const Rows& data, const Rows& hidden) {
  Encoded encoded;
  const Rows features = tape.make(sizes.edges.edges, sizes.edge_width);
  const bool again = options.recompute == RecomputePolicy::kFull;
  encoded.latent = tape.recomputed(again, {data, hidden, features}, [&] {
    const Rows e = mapper_edges(tape, options, context, features);
    // Under kBlock rows alone are run again, range by range.
    const bool by_range = options.recompute == RecomputePolicy::kBlock;
    const auto over_rows = [&](const Rows& x, const auto& f) {
      return over_ranges(tape, by_range ? options.chunks : 1, by_range, x, {}, {},
                         [&](const Rows& some, const Rows&) { return f(some); });
    };
    const Rows source = over_rows(data, [&](const Rows& some) {
      return by_range ? embed_here(tape, options, context, some)
                      : embed(tape, options, context, some);
    });
    const Rows target = tape.repeat(embed_here(tape, options, context, hidden), context.copies);
    // Uses the weights of update_nodes().
    encoded.data = tape.again([&] {
      return over_rows(
          source, [&](const Rows& some) { return update_sources(tape, options, context, some); });
    });
    const Rows all = sources(tape, source, sizes.edges, context);
    // The gradient of what the decoder is handed waits; that of the sources is added up over
    // chunks.
    const double waiting = encoded.data.storage + (options.chunks > 1 ? 2.0 : 1.0) * all.storage;
    return tape.holding(waiting, [&] {
      return over_chunks(tape, options, target, e, {all}, [&](const Rows& some, const Rows& edges) {
        const Messages sent =
            messages(tape, options, context, some, all,
                     edges_of_chunk(tape, options, context, edges), Edges::kUnread);
        return update_nodes(tape, options, context, some, sent.nodes);
      });
    });
  });
  return encoded;
}

Rows gnn_processor(Tape& tape, const BlockOptions& options, const PartContext& context,
                   const PartSizes& sizes, const Rows& x, const Rows& edges, int64_t layers) {
  const Rows features = tape.make(sizes.edges.edges, sizes.edge_width);
  PartContext whole = context;  // embeddings are not sliced
  whole.tensor = 1;
  const auto embedded = [&] {
    if (options.edge_ranges == 1)
      return tape.repeat(embed(tape, options, whole, features), context.copies);
    return over_ranges(
        tape, options.edge_ranges, /*again=*/true, tape.repeat(features, context.copies), {}, {},
        [&](const Rows& some, const Rows&) { return embed_here(tape, options, whole, some); });
  };
  const Rows e = edges.rows > 0 ? edges : embedded();
  int64_t done = 0;
  const auto layer = [&](const State& state, bool ends_part) -> State {
    const bool unread =
        context.ends && ++done == layers && !model::runs_layers_again(options.recompute);
    const bool by_range = options.edge_ranges > 1;
    const bool halo = context.divided && !by_range && is_fused(edge_mlp(options, context), context);
    Rows all = halo ? received_sources(tape, state[0], sizes.edges, context)
                    : sources(tape, state[0], sizes.edges, context);
    if (by_range) all = source_product(tape, edge_mlp(options, context), context, all);
    State next;
    const auto block = [&](const Rows& targets, const Rows& its_edges) {
      const Messages sent = messages(tape, options, context, targets, all, its_edges,
                                     unread ? Edges::kUnread : Edges::kWanted, by_range, halo);
      next = {update_nodes(tape, options, context, targets, sent.nodes), sent.edges};
      return next[0];
    };
    if (!by_range) {
      block(state[0], state[1]);
      return next;
    }
    // Gradients of the whole state come in and go out.
    return tape.holding(2.0 * (state[0].storage + state[1].storage), [&]() -> State {
      const Rows nodes = over_ranges(tape, options.edge_ranges, /*again=*/true, state[0], state[1],
                                     {all}, block, ends_part);
      return {nodes, tape.make(state[1].rows, context.channels)};
    });
  };
  return run_steps(tape, options, context, layers, {x, e}, {}, layer)[0];
}

Rows gnn_decoder(Tape& tape, const BlockOptions& options, const PartContext& context,
                 const PartSizes& sizes, const Rows& latent, const Rows& data, int64_t out) {
  model::MlpOptions extractor = mlp_options(options, context, context.channels, out);
  extractor.layer_norm = false;
  const Rows features = tape.make(sizes.edges.edges, sizes.edge_width);
  const bool again = options.recompute == RecomputePolicy::kFull;
  return tape.recomputed(again, {latent, data, features}, [&] {
    const Rows e = mapper_edges(tape, options, context, features);
    const Rows all = source_product(tape, edge_mlp(options, context), context,
                                    sources(tape, latent, sizes.edges, context));
    return over_chunks(tape, options, data, e, {all}, [&](const Rows& some, const Rows& edges) {
      const Messages sent =
          messages(tape, options, context, some, all, edges_of_chunk(tape, options, context, edges),
                   Edges::kUnread, /*sources_multiplied=*/true);
      const Rows updated = update_nodes(tape, options, context, some, sent.nodes);
      return mlp(tape, extractor, context, {MlpInput::Kind::kPlain, updated, {}},
                 /*residual=*/false, model::kept_hidden(options.recompute));
    });
  });
}

}  // namespace aifs::plan
