// SPDX-License-Identifier: Apache-2.0
// A whole plain MLP (linear, GELU, ..., linear, LayerNorm) with the residual sum and the sum at
// targets after it, as one operation with a backward pass written by hand: matrix products by the
// library, everything between them in kernels that read and write each row once
// (model/kernels/row_ops.h). The backward pass keeps the inputs, the values before the norm and, of
// the hidden layers, what the plan says. Same function as Mlp; works on the CPU too.
//
// Gradients of parameters that have one already (ParameterSet::flatten) are added to it in place,
// and autograd is told of none.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/kernels/row_ops.h"
#include "parallel/overlapped_exchange.h"

namespace aifs::model {

// Says what the first linear is applied to.
enum class FirstProduct {
  kPlain,  // x, perhaps filled up
  kPair,   // [a | b]
  kTwice,  // [x | x]
  kEdges   // [x_target[target] | x_source[source] | e]
};

struct FusedMlpPlan {
  FirstProduct first = FirstProduct::kPlain;
  EdgeIndexPtr edges = nullptr;                         // kEdges
  bool residual = false;                                // adds a, x or e; only with a norm
  std::optional<double> layer_norm_eps = std::nullopt;  // none: no norm
  // Says what is kept of hidden layers: their GELUs and the derivatives of those, the values before
  // them (GELUs are computed again), or nothing (all is).
  Keep hidden = Keep::kSlope;
  bool adds_rows = false;     // kPlain without a norm: a second operand is added to the result
  bool unread = false;        // the result is not computed: only gradients are wanted
  bool filled = false;        // without a norm: the result may be filled up (model/base/filling.h)
  bool rows_wanted = true;    // kEdges: false if only the sums are
  bool one_node_set = false;  // kEdges: x_target is x_source; filled in
  // kEdges: in place of x_source stands source_product(x_source).
  bool sources_multiplied = false;
  // kEdges: x_target is a result, too. Whoever needs it once more takes that: the gradient that
  // comes back by it is added in a product of this one's backward pass. So is x_source, unless it
  // is another form of x_target or multiplied already.
  bool hands_on_target = false, hands_on_source = false;
  // kEdges of one node set, of which x_target and x_source are own rows: those of other ranks,
  // which the edges count as further sources, come by this exchange beside products of own rows,
  // their gradients go back beside those of weights.
  std::shared_ptr<parallel::OverlappedExchange> halo = nullptr;
  int64_t copies = 1;  // of the graph that the rows are of, with a halo (model/nodes/local_edges.h)
};

struct FusedMlpResult {
  at::Tensor rows;
  at::Tensor sums;            // kEdges: of rows at their targets, (num_targets, C)
  at::Tensor target, source;  // x_target and x_source, if they are handed on
};

// Weight and bias of each linear, then of the norm, in fp32 (fp64), and the weights of the linears
// and the bias of the last one once more in the type of the rows.
struct FusedMlpWeights {
  std::vector<at::Tensor> parameters, working;
};

// `rows` as listed above, in one type; those of kPlain may be filled up (model/base/filling.h), as
// is then their gradient. Gradients of parameters come in their own type.
FusedMlpResult fused_mlp(const FusedMlpPlan& plan, const std::vector<at::Tensor>& rows,
                         const FusedMlpWeights& weights);

// x_source times its part of the first weight under kEdges: what several calls with other edges
// share.
at::Tensor source_product(const at::Tensor& x_source, const FusedMlpWeights& weights);

}  // namespace aifs::model
