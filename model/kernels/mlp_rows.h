// SPDX-License-Identifier: Apache-2.0
// An MLP (linear, GELU, ..., linear, LayerNorm) with the residual sum and the sum at targets after
// it, on the CPU, without autograd: rows pass through all of it block after block while they are in
// the caches (model/kernels/cpu/row_block.h). fp32 and fp64,
// for widths that row_products_support() (model/kernels/row_products.h).
//
// Rows are divided into parts by their number alone, which threads take; sums over rows are added
// up part after part. Results therefore do not depend on the number of threads.
#pragma once

#include <optional>
#include <vector>

#include "model/kernels/row_ops.h"

namespace aifs::model {

// Describes what is computed. The first linear gives the sum of products of several inputs and,
// with edges, at_target[target[m]] + at_source[source[m]].
struct RowMlp {
  std::vector<at::Tensor> inputs;      // (rows, K_i)
  std::vector<at::Tensor> first;       // (H, K_i) parts of the first weight, rows may be apart
  std::vector<at::Tensor> weights;     // of the other linears, (out, in)
  std::vector<at::Tensor> biases;      // of all linears
  std::optional<NormParameters> norm;  // after the last one
  bool residual = false;               // adds the first input, after the norm
  const EdgeIndex* edges = nullptr;    // needs a norm
  at::Tensor at_target, at_source;     // (nodes, H), with edges
};

struct RowMlpWanted {
  bool rows = true;  // the result itself; with edges only its sums otherwise
  bool pre = true;   // what goes into each GELU, for the backward pass
};

struct RowMlpResult {
  at::Tensor rows = {}, sums = {};
  // For the backward pass, in rows that end in zeros: what goes into GELUs and into the norm.
  std::vector<at::Tensor> pre = {};
  at::Tensor z = {}, statistics = {};
};
RowMlpResult mlp_rows(const RowMlp& mlp, const RowMlpWanted& wanted);

// Says where gradients of parameters are added, shaped as in RowMlp.
struct RowMlpSums {
  std::vector<at::Tensor> first, weights, biases;
  at::Tensor norm_weight, norm_bias;
};
struct RowMlpGradients {
  std::vector<at::Tensor> inputs;  // undefined if not wanted
  // With edges, of the first product: edge by edge, and summed at targets.
  at::Tensor at_edges, at_target;
};
// `kept` is a result of mlp_rows(): z and statistics if there is a norm, `pre` or nothing, which is
// then computed again. d_rows and d_sums (with edges) may be undefined, but not both.
RowMlpGradients mlp_rows_backward(const RowMlp& mlp, const RowMlpResult& kept,
                                  const at::Tensor& d_rows, const at::Tensor& d_sums,
                                  const RowMlpSums& sums, bool inputs_wanted);

}  // namespace aifs::model
