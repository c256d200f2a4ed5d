// SPDX-License-Identifier: Apache-2.0
// How rows are divided into parts and blocks, and the matrices and buffers that work on blocks
// (model/kernels/cpu/row_block.h) needs.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "model/kernels/cpu/row_block.h"

namespace aifs::model::cpu {

// Rows of a block: with 64 channels three of them fit the first cache together with a panel of a
// weight. Wider MLPs leave it, but not the second.
inline constexpr int64_t kBlockRows = 48;

// Memory that begins with a line of the cache, not cleared.
template <class T>
class Buffer {
 public:
  explicit Buffer(int64_t size = 0) : values_(size == 0 ? nullptr : allocate(size)) {}
  T* data() const { return values_.get(); }

 private:
  static constexpr std::align_val_t kLine{64};
  static T* allocate(int64_t size) {
    return static_cast<T*>(::operator new(static_cast<size_t>(size) * sizeof(T), kLine));
  }
  struct Free {
    void operator()(T* p) const { ::operator delete(p, kLine); }
  };
  std::unique_ptr<T, Free> values_;
};

// Says where the parts of some rows begin, and with edges those of their targets: a target's edges
// are in one part.
struct Parts {
  std::vector<int64_t> rows{0}, targets{0};

  // With edges: their targets, ascending, where those of each target begin, and how many there are.
  explicit Parts(int64_t num_rows, const int32_t* target = nullptr,
                 const int32_t* target_begin = nullptr, int64_t num_targets = 0) {
    constexpr int64_t kFewRows = 64, kManyRows = 32768;
    const int64_t count =
        num_rows >= kManyRows ? 64 : std::clamp<int64_t>(num_rows / kFewRows, 1, 16);
    for (int64_t i = 1; i < count; ++i) {
      const int64_t row = num_rows * i / count;
      if (target) targets.push_back(target[row]);
      rows.push_back(target ? target_begin[target[row]] : row);
    }
    rows.push_back(num_rows);
    targets.push_back(num_targets);
  }
  int64_t count() const { return static_cast<int64_t>(rows.size()) - 1; }

  // f(first row, number of rows) for each block of a part.
  template <class F>
  void for_blocks(int64_t part, const F& f) const {
    const auto p = static_cast<size_t>(part);
    for (int64_t row = rows[p]; row < rows[p + 1]; row += kBlockRows)
      f(row, std::min(kBlockRows, rows[p + 1] - row));
  }
};

// Returns what a product is added to: a row, what there is, or nothing.
template <class T>
struct Start {
  const T* bias = nullptr;
  bool adds = false;
};

// Rows `width` apart.
template <class T>
struct RowsOf {
  const T* data;
  int64_t width;
};

// A matrix (depth, width) in panels, zeros behind its columns.
template <class T>
struct Panels {
  static constexpr int64_t kWide = kPanel * 32 / static_cast<int64_t>(sizeof(T));
  int64_t depth, width;
  Buffer<T> values;

  explicit Panels(const at::Tensor& b)
      : depth(b.size(0)),
        width(padded<T>(b.size(1))),
        values((b.size(1) + kWide - 1) / kWide * kWide * depth) {
    const T* from = b.const_data_ptr<T>();
    const int64_t row = b.stride(0), column = b.stride(1);
    T* to = values.data();
    for (int64_t first = 0; first < b.size(1); first += kWide) {
      const int64_t columns = std::min(kWide, b.size(1) - first);
      for (int64_t k = 0; k < depth; ++k, to += kWide) {
        for (int64_t c = 0; c < kWide; ++c)
          to[c] = c < columns ? from[k * row + (first + c) * column] : T(0);
      }
    }
  }

  // out = start + a b, see BlockProduct.
  void multiply(int64_t rows, const T* a, int64_t a_row, T* out, int64_t out_row,
                const Start<T>& start) const {
    cpu::multiply(BlockProduct<T>{.rows = rows,
                                  .depth = depth,
                                  .width = width,
                                  .a = a,
                                  .a_row = a_row,
                                  .a_depth = 1,
                                  .b = values.data(),
                                  .b_row = kWide,
                                  .b_panel = kWide * depth,
                                  .out = out,
                                  .out_row = out_row,
                                  .bias = start.bias,
                                  .adds = start.adds});
  }
};

// sum (out, padded in) += d^T x of a block; rows of both are padded.
template <class T>
void add_outer_block(int64_t rows, const RowsOf<T>& d, int64_t out, const RowsOf<T>& x, T* sum) {
  multiply(BlockProduct<T>{.rows = out,
                           .depth = rows,
                           .width = x.width,
                           .a = d.data,
                           .a_row = 1,
                           .a_depth = d.width,
                           .b = x.data,
                           .b_row = x.width,
                           .b_panel = Panels<T>::kWide,
                           .out = sum,
                           .out_row = x.width,
                           .adds = true});
}

// Rows `width` wide from such ones, padded or not.
template <class T>
void copy_rows(const T* from, int64_t from_row, T* to, int64_t to_row, int64_t width,
               int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    std::copy_n(from + i * from_row, width, to + i * to_row);
}

// A vector (n) with zeros behind it.
template <class T>
std::vector<T> padded_vector(const at::Tensor& x) {
  std::vector<T> values(static_cast<size_t>(padded<T>(x.numel())));
  std::copy_n(x.const_data_ptr<T>(), x.numel(), values.begin());
  return values;
}

// Buffers of a thread for the rows of a block.
template <class T>
class Room {
 public:
  Room(size_t count, int64_t width)
      : stride_(kBlockRows * width), values_(static_cast<int64_t>(count) * stride_) {}
  T* operator[](size_t i) const { return values_.data() + static_cast<int64_t>(i) * stride_; }

 private:
  int64_t stride_;
  Buffer<T> values_;
};

// Sums over rows that every part adds up on its own: matrices and vectors with padded rows.
template <class T>
class PartialSums {
 public:
  // Returns where the sum for `tensor` (rows, columns) or (columns) begins.
  int64_t add(const at::Tensor& tensor) {
    const int64_t begin = size_;
    places_.push_back({tensor, begin});
    const int64_t rows = tensor.dim() == 2 ? tensor.size(0) : 1;
    size_ += rows * padded<T>(tensor.size(-1));
    return begin;
  }
  void start(int64_t num_parts) {
    num_parts_ = num_parts;
    values_ = Buffer<T>(num_parts * size_);
  }
  // Cleared for the thread that adds to it.
  T* part(int64_t i) {
    std::fill_n(values_.data() + i * size_, size_, T(0));
    return values_.data() + i * size_;
  }
  // Adds all parts to the tensors, one after the other.
  void finish() const {
    constexpr int64_t kGrain = 4096;
    at::parallel_for(0, size_, kGrain, [&](int64_t first, int64_t last) {
      T* sum = values_.data();
      for (int64_t p = 1; p < num_parts_; ++p) {
        const T* more = sum + p * size_;
        for (int64_t i = first; i < last; ++i)
          sum[i] += more[i];
      }
    });
    for (const Place& place : places_) {
      const at::Tensor& tensor = place.tensor;
      const int64_t width = tensor.size(-1), stride = padded<T>(width);
      const int64_t rows = tensor.dim() == 2 ? tensor.size(0) : 1;
      const int64_t apart = tensor.dim() == 2 ? tensor.stride(0) : 0;
      for (int64_t r = 0; r < rows; ++r) {
        T* to = tensor.data_ptr<T>() + r * apart;
        const T* from = values_.data() + place.begin + r * stride;
        for (int64_t c = 0; c < width; ++c)
          to[c] += from[c];
      }
    }
  }

 private:
  struct Place {
    at::Tensor tensor;
    int64_t begin;
  };
  std::vector<Place> places_;
  int64_t size_ = 0, num_parts_ = 0;
  Buffer<T> values_;
};

}  // namespace aifs::model::cpu
