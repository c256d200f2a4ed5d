// SPDX-License-Identifier: Apache-2.0
// How parts run their pieces: layer after layer, or range of targets after range, with or without
// recomputation. Shared by all families.
#pragma once

#include "core/enum_names.h"
#include "model/base/parameters.h"
#include "model/base/recompute.h"
#include "model/kernels/edge_chunks.h"
#include "model/kernels/segment.h"

namespace aifs::model {

// Says what is recomputed of an encoder, processor or decoder: nothing, the embeddings of a GNN's
// edges and nodes, all its MLPs, each of its blocks (or ranges of targets), or all of it at once
// (processors: in groups of blocks).
enum class RecomputePolicy { kNone, kEmbedding, kMlp, kBlock, kFull };

// True if layers run again as a whole, one by one or in groups.
constexpr bool runs_layers_again(RecomputePolicy policy) {
  return policy == RecomputePolicy::kBlock || policy == RecomputePolicy::kFull;
}

using TensorList = std::vector<at::Tensor>;
using Piece = TensorsFunction;

// piece(inputs), recomputed if `wanted`. Inputs may be undefined, but for those of a state.
TensorList maybe_recomputed(bool wanted, const Piece& piece, const TensorList& inputs,
                            const StateChange& change = {});

// (rows, C) -> (copies * rows, C).
at::Tensor repeat_rows(const at::Tensor& rows, int64_t copies);

// One layer: from [state..., context...] to the next state.
using Step = Piece;

// Describes what is recomputed of steps: under kBlock every step on its own, under kFull `groups`
// groups of consecutive steps. The states before the first `offload` of those are kept in a stash,
// that before the last never.
struct StepsOptions {
  RecomputePolicy policy = RecomputePolicy::kNone;
  int64_t groups = 1;
  int64_t offload = 0;
};

// How `num_steps` steps fall into pieces that run again: so many of `size` steps, the first
// `offload` with their states in a stash. The last piece may be shorter.
struct StepGroups {
  int64_t size, count, offload;
};
StepGroups step_groups(int64_t num_steps, const StepsOptions& options);

// The state through all steps, each given `context` too.
TensorList run_steps(const std::vector<Step>& steps, const StepsOptions& options,
                     const TensorList& state, const TensorList& context,
                     HostStash* stash = nullptr);

// The layers of a processor as units of its parameters (ParameterSet::add_unit()).
class LayerUnits {
 public:
  // Before the first layer is built.
  explicit LayerUnits(const ParameterScope& scope)
      : set_(&scope.set()), first_layer_(scope.first_layer()), first_(set_->entries().size()) {}
  // After each layer.
  void end_layer();
  // The state after steps, one a layer: those of this rank's stage, each with the tensors of its
  // unit. Layers change the first `num_changing` tensors of the state.
  TensorList run(const std::vector<Step>& steps, const StepsOptions& options, TensorList state,
                 size_t num_changing) const;

 private:
  ParameterSet* set_;
  int64_t first_layer_;
  size_t first_;
  std::vector<int64_t> units_;
};

// The rows of all targets from those of each chunk: body(chunk's edges) is given
// [target rows of the chunk, edge rows of the chunk, shared...] and returns one tensor.
at::Tensor over_chunks(const std::vector<EdgeChunk>& chunks,
                       const std::function<Piece(const EdgeIndexPtr&)>& body, bool recompute,
                       const at::Tensor& target_rows, const at::Tensor& edge_rows,
                       const TensorList& shared);

constexpr auto enum_table(RecomputePolicy) {
  using enum RecomputePolicy;
  return std::to_array<EnumName<RecomputePolicy>>({{kNone, "none"},
                                                   {kEmbedding, "embedding"},
                                                   {kMlp, "mlp"},
                                                   {kBlock, "block"},
                                                   {kFull, "full"}});
}

}  // namespace aifs::model
