// SPDX-License-Identifier: Apache-2.0
// Layers on a tape (plan/tape.h), each the image of the one of the same name under model/layers.
#pragma once

#include "model/layers/mlp.h"
#include "model/network/options.h"
#include "plan/rank_rows.h"
#include "plan/tape.h"

namespace aifs::plan {

// How a part runs, apart from its options.
struct PartContext {
  int64_t channels = 0;
  int64_t copies = 1;                               // of the graph: batch and ensemble
  int64_t tensor = 1;                               // ranks that share the products
  bool divided = false;                             // source rows come from other ranks
  const model::SequenceShare* attention = nullptr;  // of a Transformer that is divided
  Rows condition = {};                              // of a processor's norms; none: plain norms
  bool ends = true;  // of a processor: has its last layer, whose edges nobody reads
  // True where "auto" kernels are fused (model/layers/fused_mlp.h): a GPU, or activations in fp32
  // on a CPU.
  bool gpu = false, wide = false;
  model::KernelChoice kernels = model::KernelChoice::kAuto;

  // Returns, of n things that the ranks share, those of the one that has most.
  int64_t most(int64_t n) const { return (n + tensor - 1) / tensor; }
  // Channels of its attention heads.
  int64_t own_attention(const model::BlockOptions& options) const {
    const int64_t width = options.attention_channels > 0 ? options.attention_channels : channels;
    return most(options.heads) * (width / options.heads);
  }
};

// A norm of a processor's block.
Rows block_norm(Tape& tape, const PartContext& context, const Rows& x);

// Returns what so many heads of a Transformer see.
model::TransformerOptions attention_of(const model::BlockOptions& block, int64_t heads);

// The operands of the first linear of an MLP: x alone; [a | b]; [x | x]; [targets | sources | e].
struct MlpInput {
  enum class Kind { kPlain, kPair, kTwice, kEdges };
  Kind kind = Kind::kPlain;
  Rows a, b, e = {};                // kEdges: targets, sources, edges
  bool sources_multiplied = false;  // kEdges of a fused MLP: b comes from source_product()
  bool halo = false;                // the same: sources are a, and b of other ranks
  bool rows_wanted = true;          // kEdges: else a fused MLP gives sums at the targets alone
};

// True if it is one operation (model/layers/fused_mlp.h).
bool is_fused(const model::MlpOptions& options, const PartContext& context);
// With `residual` the operand is added to the result, which is none where rows are not wanted;
// `kept` of the hidden layers of a fused MLP for the backward pass.
Rows mlp(Tape& tape, const model::MlpOptions& options, const PartContext& context,
         const MlpInput& input, bool residual = false, model::Keep kept = model::Keep::kSlope);

// source_product() of model/layers/fused_mlp.h, or the rows themselves for an MLP that is not
// fused.
Rows source_product(Tape& tape, const model::MlpOptions& options, const PartContext& context,
                    const Rows& sources);

// Rows of all sources of a part's edges from own rows.
Rows sources(Tape& tape, const Rows& own, const EdgeRows& edges, const PartContext& context);
// Returns only those of other ranks, that come by an exchange beside computation.
Rows received_sources(Tape& tape, const Rows& own, const EdgeRows& edges,
                      const PartContext& context);

// body(targets, edge rows) for `count` ranges of targets, each run again if wanted; what it gives
// put together.
Rows over_ranges(Tape& tape, int64_t count, bool again, const Rows& targets, const Rows& edges,
                 const std::vector<Rows>& shared,
                 const std::function<Rows(const Rows&, const Rows&)>& body, bool ends_part = false);
// over_chunks() of model/layers/steps.h.
Rows over_chunks(Tape& tape, const model::BlockOptions& options, const Rows& targets,
                 const Rows& edges, const std::vector<Rows>& shared,
                 const std::function<Rows(const Rows&, const Rows&)>& body);

// run_steps() of model/layers/steps.h for `layers` equal layers: body(state, whether the layer ends
// a part) gives the next one. `given` are tensors that every layer is given too.
using State = std::vector<Rows>;
State run_steps(Tape& tape, const model::BlockOptions& options, const PartContext& context,
                int64_t layers, State state, const std::vector<Rows>& given,
                const std::function<State(const State&, bool)>& body);

// The parts of the families. Rows: data and hidden those of the rank; widths of data and hidden
// features; edge_width of the features of an edge.
struct PartSizes {
  const EdgeRows& edges;
  int64_t edge_width = 0;
};
struct Encoded {
  Rows latent, data;  // what the decoder is handed
};
Encoded gnn_encoder(Tape& tape, const model::BlockOptions& options, const PartContext& context,
                    const PartSizes& sizes, const Rows& data, const Rows& hidden);
// `edges` come from the stage before; without rows they are embedded here.
Rows gnn_processor(Tape& tape, const model::BlockOptions& options, const PartContext& context,
                   const PartSizes& sizes, const Rows& x, const Rows& edges, int64_t layers);
Rows gnn_decoder(Tape& tape, const model::BlockOptions& options, const PartContext& context,
                 const PartSizes& sizes, const Rows& latent, const Rows& data, int64_t out);

Encoded graph_transformer_encoder(Tape& tape, const model::BlockOptions& options,
                                  const PartContext& context, const PartSizes& sizes,
                                  const Rows& data, const Rows& hidden);
Rows graph_transformer_processor(Tape& tape, const model::BlockOptions& options,
                                 const PartContext& context, const PartSizes& sizes, const Rows& x,
                                 int64_t layers);
Rows graph_transformer_decoder(Tape& tape, const model::BlockOptions& options,
                               const PartContext& context, const PartSizes& sizes,
                               const Rows& latent, const Rows& data, int64_t out);

Encoded transformer_encoder(Tape& tape, const model::BlockOptions& options,
                            const PartContext& context, const Rows& data, const Rows& hidden);
Rows transformer_processor(Tape& tape, const model::BlockOptions& options,
                           const PartContext& context, const Rows& x, int64_t layers);
Rows transformer_decoder(Tape& tape, const model::BlockOptions& options, const PartContext& context,
                         const Rows& latent, const Rows& data, int64_t out);

Encoded point_wise_encoder(Tape& tape, const PartContext& context, const Rows& data);
Rows point_wise_processor(Tape& tape, const model::BlockOptions& options,
                          const PartContext& context, const Rows& x, int64_t layers);
Rows point_wise_decoder(Tape& tape, const Rows& latent, int64_t out);

// NoiseInjector of model/layers/noise.h: the condition of norms, one row for each of `rows`.
Rows noise_condition(Tape& tape, const model::EnsembleOptions& options, int64_t rows);

// Describes what a residual learns, and keeps beside the state that it is given.
struct ResidualSizes {
  int64_t nodes = 0, copies = 1;  // own ones
  int64_t prognostic = 0;
  int64_t rings = 0;  // of the whole grid
};
void learnt_residual(Tape& tape, const model::ResidualOptions& options, const ResidualSizes& sizes);

// A fixed sparse matrix between node sets.
struct MatrixSize {
  int64_t rows = 0, columns = 0, entries = 0;
};
// Its product with so many columns of fields in the type of weights. Nothing is kept.
void sparse_product(Tape& tape, const MatrixSize& matrix, int64_t width);

}  // namespace aifs::plan
