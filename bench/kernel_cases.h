// SPDX-License-Identifier: Apache-2.0
// The kernel lab's table: every kernel of our own as the layers call it (model/kernels/row_ops.h,
// graph_attention.h, train/optim/optimizer.h), and beside it the same from LibTorch's operators.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/kernels/segment.h"

namespace aifs::bench {

using TensorList = std::vector<at::Tensor>;

enum class RowsOf { kEdges, kNodes, kWeights };

// Describes what kernels work on: rows of the edges of one part of a network, rows of nodes, or
// weights, as many as a GNN of 16 layers has.
struct KernelSite {
  RowsOf rows = RowsOf::kEdges;
  model::EdgeIndexPtr edges = nullptr;  // of nodes, those that end at them; of weights, none
  c10::Device device = c10::kCPU;
  int64_t channels = 0;
  c10::ScalarType type = c10::kFloat;

  bool of_edges() const { return rows == RowsOf::kEdges; }
  int64_t num_rows() const;
};

// One call, ready to be made. Inputs are random and as they are after rounding.
struct KernelWork {
  TensorList inputs;  // everything that is read, the graph apart
  // The kernel, on `inputs` (which it may overwrite) -> results, everything that is written.
  // Sums over rows are added to what the last call left.
  std::function<TensorList(const TensorList&)> run;
  // Says what the first call should give, in the type of its floating inputs; derivatives of GELUs
  // are no codes here.
  std::function<TensorList(const TensorList&)> expect;
  double flops = 0.0;  // of products and of attention
};

struct Kernel {
  std::string name;
  std::vector<RowsOf> rows;
  std::vector<c10::ScalarType> types;
  std::function<KernelWork(const KernelSite&)> prepare;
};
const std::vector<Kernel>& kernels();

// The derivatives of GELUs that codes stand for (model/kernels/cuda/gelu_slope.h).
at::Tensor decoded_slopes(const at::Tensor& codes, c10::ScalarType type);

}  // namespace aifs::bench
