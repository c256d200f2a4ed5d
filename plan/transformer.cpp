// SPDX-License-Identifier: Apache-2.0
// Attention over whole node sets, and the point-wise family: both without edges.
#include <algorithm>

#include "plan/layers.h"

namespace aifs::plan {

namespace {

using model::BlockOptions;
using model::RecomputePolicy;

double number(int64_t v) {
  return static_cast<double>(v);
}

// Pairs of queries and keys of a copy for which sequence_attention() has scores.
double scored_pairs(int64_t queries, int64_t keys, const model::SequenceAttentionOptions& options) {
  const int64_t size = model::block_of_queries(options);
  double pairs = 0.0;
  for (int64_t first = 0; first < queries; first += size) {
    const int64_t count = std::min(size, queries - first);
    const model::KeyRange seen = model::visible_keys(first, count, keys, options);
    pairs += number(count) * number(seen.end - seen.begin);
  }
  return pairs;
}

// HeadAttention of model/layers/transformer.h on the heads of a tensor-parallel rank.
Rows attention(Tape& tape, const BlockOptions& options, const PartContext& context, bool is_mapper,
               const Rows& targets, const Rows& sources) {
  const int64_t own = context.own_attention(options);
  int64_t heads = context.most(options.heads);
  const auto prepared = [&](const Rows& x) {
    Rows y = tape.linear(x, own, /*bias=*/false);
    if (options.qk_norm) {
      y.rows *= heads;
      y.width /= heads;
      y = tape.layer_norm(y, /*bias=*/false);
      y.rows /= heads;
      y.width *= heads;
    }
    return options.rotary ? tape.make(y.rows, y.width) : y;
  };
  Rows q = prepared(targets), k = prepared(sources);
  Rows v = tape.linear(sources, own, /*bias=*/false);
  const int64_t head = own / std::max<int64_t>(1, heads);
  if (const model::SequenceShare* share = context.attention) {
    const double bytes = number(head * context.copies * tape.types().activation);
    for (const model::SequenceShare::Exchange& rows : share->exchanges)
      tape.exchange(number(rows.sent) * bytes, number(rows.received) * bytes);
    const int64_t width = share->heads * head;
    q = share->heads == heads ? q : tape.make(share->queries * context.copies, width);
    k = tape.make(share->keys * context.copies, width);
    v = tape.make(share->keys * context.copies, width);
    tape.move(2.0 * (q.storage + k.storage + v.storage));
    heads = share->heads;
  }
  const int64_t num_keys = k.rows / context.copies, num_queries = q.rows / context.copies;
  model::SequenceAttentionOptions seen =
      attention_of(options, heads).attention(is_mapper, num_keys, num_queries);
  if (context.attention) seen.shift = context.attention->shift;
  const bool flash = context.gpu && tape.types().activation == 2 &&
                     model::flash_does(seen, head, num_queries, num_keys);
  const bool banded = (seen.window && !flash) || options.softcap > 0.0 || options.alibi;
  const int64_t band = std::min(num_keys, 2 * seen.window.value_or(num_keys) + 1);
  for (const Rows& x : {q, k, v})
    tape.save(x);
  if (banded) {  // probabilities are kept
    const double scores =
        number(context.copies * heads) * scored_pairs(num_queries, num_keys, seen);
    tape.save_bytes(scores * number(tape.types().activation));
    tape.transient(3.0 * scores * number(tape.types().activation));
  } else {
    tape.save_bytes(number(q.rows * heads * tape.types().wide()));
  }
  tape.product(number(q.rows), number(2 * heads * head), number(band), number(2 * own));
  const Rows out = tape.linear(tape.make(targets.rows, own), context.channels);
  if (context.tensor > 1) tape.tensor_sum(out.storage);
  return out;
}

Rows residual_mlp(Tape& tape, const BlockOptions& options, const PartContext& context,
                  const Rows& y) {
  const Rows out = tape.recomputed(options.recompute == RecomputePolicy::kMlp, {y}, [&] {
    return mlp(tape,
               {.in = context.channels,
                .hidden = model::hidden_width(context.channels, options.hidden_ratio()),
                .out = context.channels,
                .extra_layers = 0,
                .layer_norm = false,
                .implementation = options.mlp_implementation,
                .activation = options.activation},
               context, {MlpInput::Kind::kPlain, block_norm(tape, context, y), {}});
  });
  return tape.add(out, y);
}

Rows cross_block(Tape& tape, const BlockOptions& options, const PartContext& context,
                 const Rows& targets, const Rows& sources) {
  for (int unused = 0; unused < 4; ++unused)  // two norms that nothing uses
    tape.parameter(context.channels);
  const Rows t = tape.layer_norm(targets);
  const Rows y = tape.add(t, attention(tape, options, context, true, t, tape.layer_norm(sources)));
  return residual_mlp(tape, options, context, y);
}

}  // namespace

model::TransformerOptions attention_of(const BlockOptions& block, int64_t heads) {
  return {.heads = heads,
          .window = block.window == 0 ? std::nullopt : std::optional(block.window),
          .backend = block.attention,
          .softcap = block.softcap,
          .alibi = block.alibi};
}

Encoded transformer_encoder(Tape& tape, const BlockOptions& options, const PartContext& context,
                            const Rows& data, const Rows& hidden) {
  const Rows latent =
      tape.recomputed(model::runs_layers_again(options.recompute), {data, hidden}, [&] {
        const Rows targets = tape.repeat(tape.linear(hidden, context.channels), context.copies);
        return cross_block(tape, options, context, targets, tape.linear(data, context.channels));
      });
  return {latent, data};
}

Rows transformer_processor(Tape& tape, const BlockOptions& options, const PartContext& context,
                           const Rows& x, int64_t layers) {
  return run_steps(tape, options, context, layers, {x}, {context.condition},
                   [&](const State& state, bool) -> State {
                     const Rows u = block_norm(tape, context, state[0]);
                     const Rows y =
                         tape.add(state[0], attention(tape, options, context, false, u, u));
                     return {residual_mlp(tape, options, context, y)};
                   })[0];
}

Rows transformer_decoder(Tape& tape, const BlockOptions& options, const PartContext& context,
                         const Rows& latent, const Rows& data, int64_t out) {
  return tape.recomputed(model::runs_layers_again(options.recompute), {latent, data}, [&] {
    const Rows sources =
        latent.width == context.channels ? latent : tape.linear(latent, context.channels);
    const Rows y =
        cross_block(tape, options, context, tape.linear(data, context.channels), sources);
    return tape.linear(tape.layer_norm(y), out);
  });
}

Encoded point_wise_encoder(Tape& tape, const PartContext& context, const Rows& data) {
  return {tape.linear(data, context.channels), data};
}

Rows point_wise_processor(Tape& tape, const BlockOptions& options, const PartContext& context,
                          const Rows& x, int64_t layers) {
  const int64_t hidden = model::hidden_width(context.channels, options.hidden_ratio());
  return run_steps(tape, options, context, layers, {x}, {}, [&](const State& state, bool) -> State {
    const Rows h =
        tape.activation(tape.layer_norm(tape.linear(state[0], hidden)), options.activation);
    return {hidden == context.channels ? h : tape.linear(h, context.channels)};
  })[0];
}

Rows point_wise_decoder(Tape& tape, const Rows& latent, int64_t out) {
  return tape.linear(tape.layer_norm(latent), out);
}

}  // namespace aifs::plan
