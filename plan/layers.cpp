// SPDX-License-Identifier: Apache-2.0
#include "plan/layers.h"

#include <algorithm>

#include "core/shares.h"
#include "model/kernels/row_products.h"

namespace aifs::plan {

namespace {

using model::MlpImplementation;

model::Activation activation_of(const model::MlpOptions& options) {
  switch (options.implementation) {
    case MlpImplementation::kMlp:
      return options.activation;
    case MlpImplementation::kGlu:
      return model::Activation::kSigmoid;
    case MlpImplementation::kSwiglu:
      return model::Activation::kSilu;
    case MlpImplementation::kGeglu:
      return model::Activation::kGelu;
    case MlpImplementation::kReglu:
      return model::Activation::kRelu;
  }
  return options.activation;
}

// The products of the first linear, `out` wide, and what a backward pass of LibTorch's operators
// would keep of them.
Rows first_linear(Tape& tape, const MlpInput& in, int64_t out, Tape::Keep keep) {
  const bool fused = keep != Tape::Keep::kAll;
  const auto n = [](int64_t v) { return static_cast<double>(v); };
  const int64_t width = in.a.width;
  switch (in.kind) {
    case MlpInput::Kind::kPlain:
      tape.save(in.a);
      return tape.linear(in.a, out, true, keep);
    case MlpInput::Kind::kPair:
      tape.weight(out, 2 * width, true);
      tape.save(in.a);
      tape.save(in.b);
      if (!fused) tape.save_weight_copy(out * 2 * width);
      tape.product(n(in.a.rows), n(2 * width), n(out));
      break;
    case MlpInput::Kind::kTwice:
      tape.weight(out, 2 * width, true);
      tape.save(in.a);
      if (!fused) tape.save_bytes(n(out * width * tape.types().activation));
      tape.product(n(in.a.rows), n(width), n(out), n(2 * width));
      break;
    case MlpInput::Kind::kEdges: {
      tape.weight(out, 3 * width, true);
      for (const Rows& x : {in.a, in.b, in.e})
        tape.save(x);
      tape.product(n(in.a.rows), n(width), n(out), 0.0);
      if (in.halo) tape.product(n(in.a.rows), n(width), n(out), 0.0);
      if (!in.sources_multiplied) tape.product(n(in.b.rows), n(width), n(out), 0.0);
      tape.product(n(in.e.rows), n(width), n(out), n(3 * width));
      const double edge_rows = n(in.e.rows * out);
      if (!fused) {  // node products go to edges; sums of gradients at nodes are in fp32
        tape.move(edge_rows * n(3 * tape.types().activation));
        tape.transient(edge_rows * n(2 * tape.types().activation + tape.types().wide()));
      }
      return tape.make(in.e.rows, out);
    }
  }
  return tape.make(in.a.rows, out);
}

// True if a fused MLP goes through its rows in blocks (model/kernels/mlp_rows.h).
bool goes_in_blocks(const model::MlpOptions& options, const PartContext& context) {
  return !context.gpu && context.wide &&
         std::max(options.hidden, options.out) <= model::kWidestRowProduct;
}

}  // namespace

bool is_fused(const model::MlpOptions& options, const PartContext& context) {
  const bool own = context.gpu || goes_in_blocks(options, context);
  const bool wanted = options.kernels == model::KernelChoice::kFused ||
                      (options.kernels == model::KernelChoice::kAuto && own);
  return wanted && context.tensor == 1 && options.implementation == MlpImplementation::kMlp &&
         activation_of(options) == model::Activation::kGelu;
}

Rows mlp(Tape& tape, const model::MlpOptions& options, const PartContext& context,
         const MlpInput& input, bool residual, model::Keep kept) {
  const bool gated = options.implementation != MlpImplementation::kMlp;
  const model::Activation activation = activation_of(options);
  // One operation keeps its operands, what goes into the norm, and of each GELU what goes into it
  // or, in 16 bits, what comes out and its slope in a byte.
  const bool fused = is_fused(options, context);
  const bool blocks = fused && goes_in_blocks(options, context);
  const auto keep = blocks ? Tape::Keep::kBlocks : fused ? Tape::Keep::kFused : Tape::Keep::kAll;
  const int64_t hidden = context.most(options.hidden);
  const auto hidden_layers = [&] {
    Rows h;
    for (int64_t i = 0; i <= options.extra_layers; ++i) {
      const auto apply = [&] {
        if (i == 0) return first_linear(tape, input, hidden, keep);
        if (context.tensor == 1) return tape.linear(h, hidden, true, keep);
        // The whole rows come together again before the next product.
        const Rows whole = tape.make(h.rows, options.hidden);
        tape.tensor_sum(whole.storage);
        return tape.linear(whole, hidden, true, keep);
      };
      const bool slopes = fused && kept == model::Keep::kSlope && tape.types().activation == 2;
      const Rows activated =
          slopes ? tape.activation_with_slope(apply()) : tape.activation(apply(), activation, keep);
      h = gated ? tape.multiply(activated, apply()) : activated;
    }
    return h;
  };
  std::vector<Rows> operands;
  for (const Rows& x : {input.a, input.b, input.e}) {
    if (x.id != 0) operands.push_back(x);
  }
  const Rows h = tape.recomputed(fused && kept == model::Keep::kNothing, operands, hidden_layers);
  Rows out = tape.linear(h, options.out, true, keep);
  if (context.tensor > 1) tape.tensor_sum(out.storage);
  if (options.layer_norm) out = tape.layer_norm(out, true, keep);
  if (blocks) {  // gradients of the result and of the operands
    double at_hand = out.storage;
    for (const Rows& x : operands)
      at_hand += x.storage;
    if (input.e.id != 0)
      at_hand += static_cast<double>(input.e.rows * hidden * tape.types().activation);
    tape.transient(at_hand);
  } else if (fused) {  // of result, norm and residual, and a recomputed hidden layer
    tape.transient((input.rows_wanted ? 4.0 : 3.0) * out.storage);
  }
  if (!residual) return out;
  const Rows& operand = input.kind == MlpInput::Kind::kEdges ? input.e : input.a;
  if (!fused || input.rows_wanted) return tape.add(out, operand);
  tape.move(operand.storage);
  return {};
}

Rows source_product(Tape& tape, const model::MlpOptions& options, const PartContext& context,
                    const Rows& sources) {
  if (!is_fused(options, context)) return sources;
  tape.save(sources);
  const auto n = [](int64_t v) { return static_cast<double>(v); };
  tape.product(n(sources.rows), n(sources.width), n(options.hidden), 0.0);
  return tape.make(sources.rows, options.hidden);
}

Rows block_norm(Tape& tape, const PartContext& context, const Rows& x) {
  return context.condition.id == 0 ? tape.layer_norm(x)
                                   : tape.conditional_norm(x, context.condition);
}

Rows sources(Tape& tape, const Rows& own, const EdgeRows& edges, const PartContext& context) {
  if (!context.divided) return own;
  tape.transfer(static_cast<double>(own.width * context.copies * tape.types().activation));
  const Rows all = tape.make(edges.sources * context.copies, own.width);
  tape.move(2.0 * all.storage);
  return all;
}

Rows received_sources(Tape& tape, const Rows& own, const EdgeRows& edges,
                      const PartContext& context) {
  tape.transfer(static_cast<double>(own.width * context.copies * tape.types().activation));
  return tape.make(edges.received * context.copies, own.width);
}

Rows over_ranges(Tape& tape, int64_t count, bool again, const Rows& targets, const Rows& edges,
                 const std::vector<Rows>& shared,
                 const std::function<Rows(const Rows&, const Rows&)>& body, bool ends_part) {
  const int64_t ranges = std::clamp<int64_t>(count, 1, std::max<int64_t>(1, targets.rows));
  const std::vector<int64_t> rows = balanced_counts(targets.rows, ranges);
  const std::vector<int64_t> edge_rows = balanced_counts(edges.rows, ranges);
  Rows result;
  for (size_t range = 0; range < rows.size(); ++range) {
    const Rows some = targets.part(rows[range]), its_edges = edges.part(edge_rows[range]);
    std::vector<Rows> inputs{some, its_edges};
    inputs.insert(inputs.end(), shared.begin(), shared.end());
    const auto piece = [&] { return body(some, its_edges); };
    const auto run = [&] { return tape.recomputed(again, inputs, piece, ends_part); };
    result = range == 0 ? run() : tape.again(run);
  }
  if (rows.size() == 1) return result;
  const Rows all = tape.make(targets.rows, result.width);
  tape.move(2.0 * all.storage);
  return all;
}

Rows over_chunks(Tape& tape, const model::BlockOptions& options, const Rows& targets,
                 const Rows& edges, const std::vector<Rows>& shared,
                 const std::function<Rows(const Rows&, const Rows&)>& body) {
  return over_ranges(tape, options.chunks, options.recompute == model::RecomputePolicy::kBlock,
                     targets, edges, shared, body);
}

State run_steps(Tape& tape, const model::BlockOptions& options, const PartContext& context,
                int64_t layers, State state, const std::vector<Rows>& given,
                const std::function<State(const State&, bool)>& body) {
  const bool again = model::runs_layers_again(options.recompute);
  const auto [size, groups, offload] = model::step_groups(
      layers, {options.recompute, options.chunks, context.gpu ? options.offload : 0});
  const int64_t num_here = groups - offload;
  for (int64_t group = 0; group < groups; ++group) {
    State inputs = given;
    double fetched = 0.0;
    if (group < offload) {
      const double bytes = tape.save_on_host(state);
      fetched = static_cast<double>(std::min(group, num_here) + 1) * bytes;
    } else {
      inputs.insert(inputs.begin(), state.begin(), state.end());
      // The next one is on its way while this one is at work.
      if (offload > 0) {
        double bytes = 0.0;
        for (const Rows& rows : state)
          bytes += rows.storage;
        fetched = static_cast<double>(groups - group) * bytes;
      }
    }
    const int64_t first = group * size, last = std::min(first + size, layers) - 1;
    tape.holding(fetched, [&] {
      return tape.recomputed(again, inputs, [&] {
        for (int64_t layer = first; layer <= last; ++layer)
          state = body(state, layer == last);
        return state[0];
      });
    });
  }
  return state;
}

}  // namespace aifs::plan
