// SPDX-License-Identifier: Apache-2.0
#include "train/loss/sparse_rows.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "core/check.h"
#include "graph/edges/edge_attributes.h"
#include "graph/edges/neighbour_edges.h"

namespace aifs::train {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kGrain = 64;  // rows that are one piece of work for a thread

struct Lists {
  const int64_t* begin;  // per output node
  const int64_t* order;  // entries of the nodes, or null: 0, 1, 2 ...
  const int64_t* from;   // input node of an entry
};

struct Sizes {
  int64_t outputs, inputs, copies, width;
};

template <class T>
void gather_rows(T* out, const T* x, const Lists& lists, const T* values, const Sizes& sizes) {
  const int64_t width = sizes.width;
  at::parallel_for(0, sizes.copies * sizes.outputs, kGrain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      T* sum = out + i * width;
      const T* field = x + i / sizes.outputs * sizes.inputs * width;
      const int64_t node = i % sizes.outputs;
      for (int64_t k = lists.begin[node]; k < lists.begin[node + 1]; ++k) {
        const int64_t entry = lists.order ? lists.order[k] : k;
        const T* row = field + lists.from[entry] * width;
        const T value = values[entry];
#pragma omp simd  // vectorised at any level of optimisation
        for (int64_t v = 0; v < width; ++v)
          sum[v] += value * row[v];
      }
    }
  });
}

// The positions of the entries of each node, ascending.
std::pair<std::vector<int64_t>, std::vector<int64_t>> entries_by_node(
    const std::vector<int64_t>& node, int64_t num_nodes) {
  std::vector<int64_t> begin(static_cast<size_t>(num_nodes) + 1, 0), order(node.size());
  for (const int64_t n : node)
    ++begin[static_cast<size_t>(n) + 1];
  for (size_t n = 1; n < begin.size(); ++n)
    begin[n] += begin[n - 1];
  std::vector<int64_t> next(begin.begin(), begin.end() - 1);
  for (size_t e = 0; e < node.size(); ++e)
    order[static_cast<size_t>(next[static_cast<size_t>(node[e])]++)] = static_cast<int64_t>(e);
  return {std::move(begin), std::move(order)};
}

struct Product : torch::autograd::Function<Product> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const SparseRows& matrix,
                            bool transposed) {
    // The matrix belongs to a loss, which outlives its graph of operations.
    ctx->saved_data["matrix"] = reinterpret_cast<int64_t>(&matrix);
    ctx->saved_data["transposed"] = transposed;
    return transposed ? matrix.apply_transposed(x) : matrix.apply(x);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const auto& matrix = *reinterpret_cast<const SparseRows*>(ctx->saved_data["matrix"].toInt());
    const at::Tensor gradient = ctx->saved_data["transposed"].toBool()
                                    ? matrix.apply(gradients[0])
                                    : matrix.apply_transposed(gradients[0]);
    return {gradient, at::Tensor(), at::Tensor()};
  }
};

bool needs_graph(const at::Tensor& x) {
  return at::GradMode::is_enabled() && x.requires_grad();
}

at::Tensor product(const at::Tensor& x, const Lists& lists, const at::Tensor& values,
                   int64_t outputs) {
  const at::Tensor from = x.contiguous();
  std::vector<int64_t> shape = from.sizes().vec();
  const int64_t inputs = shape[shape.size() - 2], width = shape.back();
  shape[shape.size() - 2] = outputs;
  at::Tensor out = at::zeros(shape, from.options());
  const int64_t copies = inputs * width == 0 ? 0 : from.numel() / (inputs * width);
  AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "sparse_rows", [&] {
    const at::Tensor typed = values.to(from.scalar_type());
    gather_rows(out.data_ptr<scalar_t>(), from.const_data_ptr<scalar_t>(), lists,
                typed.const_data_ptr<scalar_t>(), {outputs, inputs, copies, width});
  });
  return out;
}

}  // namespace

SparseRows::SparseRows(std::span<const int64_t> row, std::span<const int64_t> column,
                       std::span<const float> value, int64_t num_rows, int64_t num_columns)
    : num_rows_(num_rows), num_columns_(num_columns) {
  AIFS_CHECK(row.size() == column.size() && row.size() == value.size(), "a sparse matrix of ",
             row.size(), " rows, ", column.size(), " columns and ", value.size(), " values");
  for (size_t e = 0; e < row.size(); ++e) {
    AIFS_CHECK(row[e] >= 0 && row[e] < num_rows && column[e] >= 0 && column[e] < num_columns,
               "entry (", row[e], ", ", column[e], ") of a ", num_rows, " x ", num_columns,
               " matrix");
  }
  const auto [row_begin, order] = entries_by_node({row.begin(), row.end()}, num_rows);
  std::vector<int64_t> sorted_row, sorted_column;
  std::vector<float> sorted_value;
  for (const int64_t e : order) {
    sorted_row.push_back(row[static_cast<size_t>(e)]);
    sorted_column.push_back(column[static_cast<size_t>(e)]);
    sorted_value.push_back(value[static_cast<size_t>(e)]);
  }
  const auto [column_begin, column_order] = entries_by_node(sorted_column, num_columns);
  const auto to_tensor = [](const std::vector<int64_t>& list) {
    return at::tensor(at::ArrayRef<int64_t>(list), at::kLong);
  };
  rows_ = to_tensor(sorted_row);
  columns_ = to_tensor(sorted_column);
  values_ = at::tensor(at::ArrayRef<float>(sorted_value), at::kFloat);
  row_begin_ = to_tensor(row_begin);
  column_begin_ = to_tensor(column_begin);
  column_order_ = to_tensor(column_order);
}

namespace {

// Computes these sums on other devices than the CPU; their order is not fixed there.
at::Tensor product_by_index(const at::Tensor& x, const at::Tensor& to, const at::Tensor& from,
                            const at::Tensor& values, int64_t outputs) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape[shape.size() - 2] = outputs;
  const at::Device device = x.device();
  const at::Tensor terms =
      x.index_select(-2, from.to(device)) * values.to(x.options()).unsqueeze(-1);
  return at::zeros(shape, x.options()).index_add_(-2, to.to(device), terms);
}

}  // namespace

at::Tensor SparseRows::apply(const at::Tensor& x) const {
  AIFS_CHECK(x.dim() >= 2 && x.size(-2) == num_columns_, "a field on ", x.size(-2),
             " nodes for a matrix of ", num_columns_, " columns");
  if (needs_graph(x)) return Product::apply(x, *this, false);
  if (!x.is_cpu()) return product_by_index(x, rows_, columns_, values_, num_rows_);
  const Lists lists{row_begin_.const_data_ptr<int64_t>(), nullptr,
                    columns_.const_data_ptr<int64_t>()};
  return product(x, lists, values_, num_rows_);
}

at::Tensor SparseRows::apply_transposed(const at::Tensor& y) const {
  AIFS_CHECK(y.dim() >= 2 && y.size(-2) == num_rows_, "a field on ", y.size(-2),
             " nodes for a matrix of ", num_rows_, " rows");
  if (needs_graph(y)) return Product::apply(y, *this, true);
  if (!y.is_cpu()) return product_by_index(y, columns_, rows_, values_, num_columns_);
  const Lists lists{column_begin_.const_data_ptr<int64_t>(),
                    column_order_.const_data_ptr<int64_t>(), rows_.const_data_ptr<int64_t>()};
  return product(y, lists, values_, num_columns_);
}

std::vector<float> row_normalised(std::span<const int64_t> row, std::span<const float> value,
                                  int64_t num_rows) {
  // In fp32 and in the order of the entries, as in Anemoi.
  std::vector<float> sums(static_cast<size_t>(num_rows), 0.0f);
  for (size_t e = 0; e < row.size(); ++e)
    sums[static_cast<size_t>(row[e])] += value[e];
  std::vector<float> result(value.begin(), value.end());
  for (size_t e = 0; e < row.size(); ++e) {
    const float sum = sums[static_cast<size_t>(row[e])];
    if (sum != 0.0f) result[e] /= sum;
  }
  return result;
}

SparseRowsPtr gaussian_smoother(const graph::NodeSet& source, const graph::NodeSet& target,
                                int64_t neighbours, double sigma) {
  const graph::EdgeList edges = graph::knn_edges(source, target, neighbours, /*num_threads=*/0);
  const graph::EdgeEnds ends{.source = source,
                             .target = target,
                             .source_index = edges.source_index,
                             .target_index = edges.target_index,
                             .num_threads = 0};
  const std::vector<float> weights = graph::gaussian_distance_weights<float>(ends, sigma);
  const std::vector<int64_t> row(edges.target_index.begin(), edges.target_index.end());
  const std::vector<int64_t> column(edges.source_index.begin(), edges.source_index.end());
  return std::make_shared<const SparseRows>(row, column,
                                            row_normalised(row, weights, target.num_nodes()),
                                            target.num_nodes(), source.num_nodes());
}

}  // namespace aifs::train
