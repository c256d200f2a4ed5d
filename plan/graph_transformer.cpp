// SPDX-License-Identifier: Apache-2.0
#include "plan/layers.h"

namespace aifs::plan {

namespace {

using model::BlockOptions;
using model::RecomputePolicy;

// Keys and values of the sources of edges.
struct KeysAndValues {
  Rows key, value;
};

// GraphTransformerBlock of model/layers/graph_transformer.h on the share of a tensor-parallel rank:
// its heads, and its part of the MLP.
class Block {
 public:
  Block(Tape& tape, const BlockOptions& options, const PartContext& context, int64_t edge_width)
      : tape_(tape),
        options_(options),
        context_(context),
        edge_width_(edge_width),
        heads_(context.most(options.heads)),
        attention_(context.own_attention(options)) {}

  KeysAndValues keys_and_values(const Rows& u) const {
    return {per_head_norm(tape_.linear(u, attention_)), tape_.linear(u, attention_)};
  }

  // (m, D + 1): what attention sees of an edge.
  Rows edge_features(const Rows& e) const {
    Rows features = e;
    if (options_.edge_pre_mlp)
      features = tape_.activation(tape_.linear(e, e.width), options_.activation);
    const Rows with_one = tape_.make(e.rows, e.width + 1);
    tape_.move(2.0 * with_one.storage);
    return tape_.repeat(with_one, context_.copies);
  }

  Rows forward(const Rows& x, const Rows& u, const KeysAndValues& sources, const Rows& e) const {
    const Rows attended = attend(u, sources, e);
    const Rows sum = tape_.add(attended, tape_.linear(u, attention_));
    const Rows projected = tape_.linear(sum, context_.channels);
    if (context_.tensor > 1) tape_.tensor_sum(projected.storage);
    const Rows y = tape_.add(projected, x);
    const bool again = options_.recompute == RecomputePolicy::kMlp;
    const Rows out = tape_.recomputed(again, {y}, [&] {
      return mlp(tape_, mlp_options(), context_,
                 {MlpInput::Kind::kPlain, block_norm(tape_, context_, y), {}});
    });
    return tape_.add(out, y);
  }

 private:
  model::MlpOptions mlp_options() const {
    return {.in = context_.channels,
            .hidden = model::hidden_width(context_.channels, options_.hidden_ratio()),
            .out = context_.channels,
            .extra_layers = 0,
            .layer_norm = false,
            .implementation = options_.mlp_implementation,
            .activation = options_.activation};
  }

  Rows per_head_norm(const Rows& x) const {
    if (!options_.qk_norm) return x;
    Rows by_head = x;
    by_head.rows = x.rows * heads_;
    by_head.width = x.width / heads_;
    Rows normed = tape_.layer_norm(by_head, /*bias=*/false);
    normed.rows = x.rows;
    normed.width = x.width;
    return normed;
  }

  Rows attend(const Rows& u, const KeysAndValues& sources, const Rows& e) const {
    const auto n = [](int64_t v) { return static_cast<double>(v); };
    const Types& types = tape_.types();
    const auto kept = [&](const Rows& x) {
      return types.activation < types.kept() ? tape_.make(x.rows, x.width, types.kept()) : x;
    };
    const Rows query = per_head_norm(tape_.linear(u, attention_));
    tape_.weight(attention_, edge_width_, true);
    // The projected query and the weighted sums of edge features, and the map between them.
    const int64_t on_edges = heads_ * e.width;
    tape_.save(query);
    tape_.save_bytes(n(attention_ * e.width * types.activation));
    tape_.product(n(u.rows), n(attention_), n(e.width), 0.0);
    const Rows query_on_edges = tape_.make(u.rows, on_edges);
    for (const Rows& x : {query, query_on_edges, sources.key, sources.value, e})
      tape_.save(kept(x));
    const double edges = n(e.rows);
    // Weights of edges, or their sums, by which weights are found again from the result.
    const Rows out = tape_.make(u.rows, attention_);
    tape_.save_bytes((types.own_kernels ? n(u.rows) : edges) * n(heads_ * types.wide()));
    if (types.own_kernels) tape_.save(out);
    tape_.product(edges, n(2 * attention_ + 2 * on_edges), 1.0, 0.0);
    tape_.unsplit(4.0 * edges * n(attention_) + 2.0 * edges * n(edge_width_ * attention_));
    tape_.transient(2.0 * (sources.key.storage + sources.value.storage + 2.0 * query.storage));
    tape_.save(tape_.make(u.rows, on_edges));
    tape_.product(n(u.rows), n(e.width), n(attention_), 0.0);
    return out;
  }

  Tape& tape_;
  const BlockOptions& options_;
  const PartContext& context_;
  int64_t edge_width_, heads_, attention_;
};

}  // namespace

Encoded graph_transformer_encoder(Tape& tape, const BlockOptions& options,
                                  const PartContext& context, const PartSizes& sizes,
                                  const Rows& data, const Rows& hidden) {
  const Block block(tape, options, context, sizes.edge_width);
  const Rows features = tape.make(sizes.edges.edges, sizes.edge_width);
  const bool again = options.recompute == RecomputePolicy::kFull;
  const Rows latent = tape.recomputed(again, {data, hidden, features}, [&] {
    const Rows u = tape.layer_norm(tape.linear(data, context.channels));
    const KeysAndValues kv = block.keys_and_values(sources(tape, u, sizes.edges, context));
    const Rows targets = tape.repeat(tape.linear(hidden, context.channels), context.copies);
    const Rows e = block.edge_features(features);
    return over_chunks(tape, options, targets, e, {kv.key, kv.value},
                       [&](const Rows& some, const Rows& edges) {
                         return block.forward(some, tape.layer_norm(some), kv, edges);
                       });
  });
  return {latent, data};
}

Rows graph_transformer_processor(Tape& tape, const BlockOptions& options,
                                 const PartContext& context, const PartSizes& sizes, const Rows& x,
                                 int64_t layers) {
  const Block block(tape, options, context, sizes.edge_width);
  const Rows features = tape.make(sizes.edges.edges, sizes.edge_width);
  return run_steps(tape, options, context, layers, {x}, {features, context.condition},
                   [&](const State& state, bool) -> State {
                     const Rows u = block_norm(tape, context, state[0]);
                     const Rows e = block.edge_features(features);
                     const KeysAndValues kv =
                         block.keys_and_values(sources(tape, u, sizes.edges, context));
                     return {block.forward(state[0], u, kv, e)};
                   })[0];
}

Rows graph_transformer_decoder(Tape& tape, const BlockOptions& options, const PartContext& context,
                               const PartSizes& sizes, const Rows& latent, const Rows& data,
                               int64_t out) {
  const Block block(tape, options, context, sizes.edge_width);
  const Rows features = tape.make(sizes.edges.edges, sizes.edge_width);
  const bool again = options.recompute == RecomputePolicy::kFull;
  return tape.recomputed(again, {latent, data, features}, [&] {
    const Rows x =
        latent.width == context.channels ? latent : tape.linear(latent, context.channels);
    const Rows u = tape.layer_norm(x);
    const KeysAndValues kv = block.keys_and_values(sources(tape, u, sizes.edges, context));
    const Rows e = block.edge_features(features);
    return over_chunks(tape, options, data, e, {kv.key, kv.value},
                       [&](const Rows& some, const Rows& edges) {
                         const Rows targets = tape.linear(some, context.channels);
                         const Rows y = block.forward(targets, tape.layer_norm(targets), kv, edges);
                         return tape.linear(tape.layer_norm(y), out);
                       });
  });
}

}  // namespace aifs::plan
