// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/mlp_rows.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "core/check.h"
#include "model/kernels/count_work.h"
#include "model/kernels/row_parts.h"

namespace aifs::model {

namespace {

// The operands of a call as numbers.
template <class T>
class Call {
 public:
  explicit Call(const RowMlp& mlp)
      : mlp_(mlp),
        num_rows_(mlp.inputs[0].size(0)),
        hidden_(mlp.first[0].size(0)),
        out_(mlp.weights.back().size(0)),
        padded_out_(cpu::padded<T>(out_)),
        parts_(parts_of(mlp)) {
    for (const at::Tensor& w : mlp.first)
      first_.emplace_back(w.t());
    for (const at::Tensor& w : mlp.weights)
      weights_.emplace_back(w.t());
    for (const at::Tensor& b : mlp.biases)
      biases_.push_back(cpu::padded_vector<T>(b));
    if (mlp.norm) {
      norm_weight_ = cpu::padded_vector<T>(mlp.norm->weight);
      norm_bias_ = cpu::padded_vector<T>(mlp.norm->bias);
    }
    for (const at::Tensor& x : mlp.inputs)
      widest_ = std::max(widest_, cpu::padded<T>(x.size(1)));
    for (size_t i = 0; i < num_hidden(); ++i)
      widest_ = std::max(widest_, cpu::padded<T>(mlp.biases[i].numel()));
    widest_ = std::max(widest_, padded_out_);
  }

  RowMlpResult forward(const RowMlpWanted& wanted) const;
  RowMlpGradients backward(const RowMlpResult& kept, const at::Tensor& d_rows,
                           const at::Tensor& d_sums, const RowMlpSums& sums,
                           bool inputs_wanted) const;

 private:
  static cpu::Parts parts_of(const RowMlp& mlp) {
    const int64_t rows = mlp.inputs[0].size(0);
    if (!mlp.edges) return cpu::Parts(rows);
    return cpu::Parts(rows, mlp.edges->target.template const_data_ptr<int32_t>(),
                      mlp.edges->target_begin.template const_data_ptr<int32_t>(),
                      mlp.edges->num_targets);
  }
  size_t num_hidden() const { return mlp_.weights.size(); }
  int64_t padded_hidden(size_t layer) const { return cpu::padded<T>(mlp_.biases[layer].numel()); }
  const int32_t* ends(bool target) const {
    return (target ? mlp_.edges->target : mlp_.edges->source).template const_data_ptr<int32_t>();
  }

  // Computes what goes into the first GELU for `count` rows.
  void first_product(int64_t row, int64_t count, T* pre) const;
  // Computes the input of each hidden layer's GELU, and the result of the last in `activated`.
  void hidden_layers(int64_t row, int64_t count, const std::vector<T*>& pre, T* activated) const;
  void forward_block(int64_t row, int64_t count, const RowMlpResult& result,
                     cpu::Room<T>& room) const;

  // Clears the rows of a part's targets.
  void clear_targets(const at::Tensor& rows, int64_t part) const {
    const auto p = static_cast<size_t>(part);
    const int64_t width = rows.size(1), first = parts_.targets[p];
    std::fill_n(rows.data_ptr<T>() + first * width, (parts_.targets[p + 1] - first) * width, T(0));
  }

  struct Span {
    int64_t row, count;
  };
  struct Backward;
  void backward_block(int64_t row, int64_t count, const Backward& work, cpu::Room<T>& room,
                      T* sums) const;
  void first_backward(const Span& at, const Backward& work, cpu::Room<T>& room, const T* d, T* g,
                      T* sums) const;

  const RowMlp& mlp_;
  int64_t num_rows_, hidden_, out_, padded_out_, widest_ = 0;
  cpu::Parts parts_;
  std::vector<cpu::Panels<T>> first_, weights_;
  std::vector<std::vector<T>> biases_;
  std::vector<T> norm_weight_, norm_bias_;
};

template <class T>
void Call<T>::first_product(int64_t row, int64_t count, T* pre) const {
  const int64_t stride = padded_hidden(0);
  bool adds = false;
  if (mlp_.edges) {
    cpu::gather(cpu::Gather<T>{.rows = count,
                               .width = hidden_,
                               .a = mlp_.at_target.const_data_ptr<T>(),
                               .index_a = ends(true) + row,
                               .b = mlp_.at_source.const_data_ptr<T>(),
                               .index_b = ends(false) + row,
                               .start = biases_[0].data(),
                               .out = pre,
                               .out_row = stride});
    adds = true;
  }
  for (size_t i = 0; i < first_.size(); ++i) {
    const int64_t width = first_[i].depth;
    first_[i].multiply(count, mlp_.inputs[i].const_data_ptr<T>() + row * width, width, pre, stride,
                       {biases_[0].data(), adds});
    adds = true;
  }
}

template <class T>
void Call<T>::hidden_layers(int64_t row, int64_t count, const std::vector<T*>& pre,
                            T* activated) const {
  for (size_t i = 0; i < num_hidden(); ++i) {
    const int64_t stride = padded_hidden(i);
    if (i == 0) {
      first_product(row, count, pre[0]);
    } else {
      weights_[i - 1].multiply(count, activated, padded_hidden(i - 1), pre[i], stride,
                               {biases_[i].data()});
    }
    cpu::gelu(pre[i], count * stride, activated);
  }
}

template <class T>
void Call<T>::forward_block(int64_t row, int64_t count, const RowMlpResult& result,
                            cpu::Room<T>& room) const {
  T *activated = room[0], *free = room[1];
  std::vector<T*> pre;
  for (size_t i = 0; i < num_hidden(); ++i) {
    pre.push_back(
        result.pre.empty() ? free : result.pre[i].template data_ptr<T>() + row * padded_hidden(i));
  }
  hidden_layers(row, count, pre, activated);
  const bool direct = !mlp_.norm && out_ == padded_out_;
  if (!mlp_.norm && !result.rows.defined()) return;
  T* rows = result.rows.defined() ? result.rows.data_ptr<T>() + row * out_ : free;
  T* z = direct ? rows : result.z.defined() ? result.z.data_ptr<T>() + row * padded_out_ : room[2];
  weights_.back().multiply(count, activated, padded_hidden(num_hidden() - 1), z, padded_out_,
                           {biases_.back().data()});
  if (!mlp_.norm) {
    if (!direct) cpu::copy_rows(z, padded_out_, rows, out_, out_, count);
    return;
  }
  const T* residual = mlp_.residual ? mlp_.inputs[0].const_data_ptr<T>() + row * out_ : nullptr;
  cpu::norm(cpu::Norm<T>{.rows = count,
                         .width = out_,
                         .z = z,
                         .weight = norm_weight_.data(),
                         .bias = norm_bias_.data(),
                         .residual = residual,
                         .eps = static_cast<T>(mlp_.norm->eps),
                         .y = rows,
                         .statistics = result.statistics.data_ptr<T>() + 2 * row});
  if (!mlp_.edges) return;
  cpu::scatter(
      cpu::Scatter<T>{count, out_, rows, out_, ends(true) + row, result.sums.data_ptr<T>()});
}

template <class T>
RowMlpResult Call<T>::forward(const RowMlpWanted& wanted) const {
  const at::TensorOptions options = mlp_.inputs[0].options();
  RowMlpResult result;
  if (wanted.rows) result.rows = at::empty({num_rows_, out_}, options);
  if (wanted.pre) {
    for (size_t i = 0; i < num_hidden(); ++i)
      result.pre.push_back(at::empty({num_rows_, padded_hidden(i)}, options));
  }
  if (mlp_.norm) {
    result.z = at::empty({num_rows_, padded_out_}, options);
    result.statistics = at::empty({num_rows_, 2}, options);
  }
  if (mlp_.edges) result.sums = at::empty({mlp_.edges->num_targets, out_}, options);
  at::parallel_for(0, parts_.count(), 1, [&](int64_t first, int64_t last) {
    cpu::Room<T> room(3, widest_);
    for (int64_t part = first; part < last; ++part) {
      if (mlp_.edges) clear_targets(result.sums, part);
      parts_.for_blocks(
          part, [&](int64_t row, int64_t count) { forward_block(row, count, result, room); });
    }
  });
  return result;
}

// Operands and results of a backward pass, and where the sums of a part are.
template <class T>
struct Call<T>::Backward {
  const RowMlpResult& kept;
  const at::Tensor &d_rows, &d_sums;
  RowMlpGradients gradients = {};
  std::vector<cpu::Panels<T>> first = {}, weights = {};  // in the other direction
  cpu::PartialSums<T> sums = {};
  std::vector<int64_t> d_first = {}, d_weights = {}, d_biases = {};
  int64_t d_norm_weight = 0, d_norm_bias = 0;
};

// The gradients of the first linear from `d`, that of its result; `g` is that of the residual.
template <class T>
void Call<T>::first_backward(const Span& at, const Backward& work, cpu::Room<T>& room, const T* d,
                             T* g, T* sums) const {
  const auto [row, count] = at;
  const int64_t stride = padded_hidden(0);
  const RowMlpGradients& to = work.gradients;
  if (mlp_.edges) {
    cpu::copy_rows(d, stride, to.at_edges.data_ptr<T>() + row * hidden_, hidden_, hidden_, count);
    cpu::scatter(
        cpu::Scatter<T>{count, hidden_, d, stride, ends(true) + row, to.at_target.data_ptr<T>()});
  }
  for (size_t i = 0; i < mlp_.inputs.size(); ++i) {
    const int64_t width = mlp_.inputs[i].size(1), wide = cpu::padded<T>(width);
    const T* x = mlp_.inputs[i].const_data_ptr<T>() + row * width;
    if (wide != width) {
      cpu::gather(
          cpu::Gather<T>{.rows = count, .width = width, .a = x, .out = room[0], .out_row = wide});
      x = room[0];
    }
    cpu::add_outer_block<T>(count, {d, stride}, hidden_, {x, wide}, sums + work.d_first[i]);
    if (to.inputs.empty()) continue;
    const bool residual = mlp_.residual && i == 0;
    T* d_x = to.inputs[i].data_ptr<T>() + row * width;
    T* padded_d_x = residual ? g : wide == width ? d_x : room[0];
    work.first[i].multiply(count, d, stride, padded_d_x, wide, {nullptr, residual});
    if (padded_d_x != d_x) cpu::copy_rows(padded_d_x, wide, d_x, width, width, count);
  }
}

template <class T>
void Call<T>::backward_block(int64_t row, int64_t count, const Backward& work, cpu::Room<T>& room,
                             T* sums) const {
  const RowMlpResult& kept = work.kept;
  T *activated = room[0], *d = room[1], *next = room[2], *g = room[3];
  std::vector<T*> pre;
  for (size_t i = 0; i < num_hidden(); ++i) {
    pre.push_back(kept.pre.empty() ? room[4 + i]
                                   : kept.pre[i].template data_ptr<T>() + row * padded_hidden(i));
  }
  if (kept.pre.empty()) hidden_layers(row, count, pre, activated);
  // The gradient of the residual may stand where it belongs from the start.
  if (mlp_.residual && out_ == padded_out_ && !work.gradients.inputs.empty())
    g = work.gradients.inputs[0].template data_ptr<T>() + row * out_;
  const bool both = work.d_sums.defined();
  cpu::gather(cpu::Gather<T>{
      .rows = count,
      .width = out_,
      .a = work.d_rows.defined() ? work.d_rows.template const_data_ptr<T>() + row * out_ : nullptr,
      .b = both ? work.d_sums.template const_data_ptr<T>() : nullptr,
      .index_b = both ? ends(true) + row : nullptr,
      .out = g,
      .out_row = padded_out_});
  T* bias_sums = sums + work.d_biases.back();
  if (mlp_.norm) {
    cpu::norm_backward(
        cpu::NormBackward<T>{.rows = count,
                             .width = out_,
                             .g = g,
                             .z = kept.z.const_data_ptr<T>() + row * padded_out_,
                             .weight = norm_weight_.data(),
                             .statistics = kept.statistics.const_data_ptr<T>() + 2 * row,
                             .d_z = d,
                             .d_weight = sums + work.d_norm_weight,
                             .d_bias = sums + work.d_norm_bias,
                             .z_sums = bias_sums});
  } else {
    cpu::add_column_sums(g, count, padded_out_, bias_sums);
  }
  const T* above = mlp_.norm ? d : g;
  int64_t stride = padded_out_;
  for (size_t i = num_hidden(); i-- > 0;) {
    const int64_t below = padded_hidden(i);
    work.weights[i].multiply(count, above, stride, next, below, {});
    cpu::gelu_backward(
        cpu::GeluBackward<T>{count, below, pre[i], next, activated, sums + work.d_biases[i]});
    cpu::add_outer_block<T>(count, {above, stride}, mlp_.weights[i].size(0), {activated, below},
                            sums + work.d_weights[i]);
    std::swap(d, next);
    above = d;
    stride = below;
  }
  first_backward({row, count}, work, room, d, g, sums);
}

template <class T>
RowMlpGradients Call<T>::backward(const RowMlpResult& kept, const at::Tensor& d_rows,
                                  const at::Tensor& d_sums, const RowMlpSums& sums,
                                  bool inputs_wanted) const {
  Backward work{.kept = kept, .d_rows = d_rows, .d_sums = d_sums};
  const at::TensorOptions options = mlp_.inputs[0].options();
  for (size_t i = 0; inputs_wanted && i < mlp_.inputs.size(); ++i) {
    work.gradients.inputs.push_back(at::empty_like(mlp_.inputs[i]));
    work.first.emplace_back(mlp_.first[i]);
  }
  if (mlp_.edges) {
    work.gradients.at_edges = at::empty({num_rows_, hidden_}, options);
    work.gradients.at_target = at::empty({mlp_.edges->num_targets, hidden_}, options);
  }
  for (const at::Tensor& w : mlp_.weights)
    work.weights.emplace_back(w);
  const auto add_all = [&](const std::vector<at::Tensor>& tensors) {
    std::vector<int64_t> places;
    for (const at::Tensor& tensor : tensors)
      places.push_back(work.sums.add(tensor));
    return places;
  };
  work.d_first = add_all(sums.first);
  work.d_weights = add_all(sums.weights);
  work.d_biases = add_all(sums.biases);
  if (mlp_.norm) {
    work.d_norm_weight = work.sums.add(sums.norm_weight);
    work.d_norm_bias = work.sums.add(sums.norm_bias);
  }
  work.sums.start(parts_.count());
  at::parallel_for(0, parts_.count(), 1, [&](int64_t first, int64_t last) {
    cpu::Room<T> room(4 + (kept.pre.empty() ? num_hidden() : 0), widest_);
    for (int64_t part = first; part < last; ++part) {
      if (mlp_.edges) clear_targets(work.gradients.at_target, part);
      T* part_sums = work.sums.part(part);
      parts_.for_blocks(part, [&](int64_t row, int64_t count) {
        backward_block(row, count, work, room, part_sums);
      });
    }
  });
  work.sums.finish();
  return work.gradients;
}

// Kernels read rows one after the other: copies of what lies otherwise.
RowMlp in_one_piece(RowMlp mlp) {
  for (at::Tensor& x : mlp.inputs)
    x = x.contiguous();
  if (mlp.at_target.defined()) mlp.at_target = mlp.at_target.contiguous();
  if (mlp.at_source.defined()) mlp.at_source = mlp.at_source.contiguous();
  return mlp;
}

at::Tensor in_one_piece(const at::Tensor& d) {
  return d.defined() ? d.contiguous() : d;
}

double products_of(const std::vector<at::Tensor>& weights, int64_t rows) {
  double sum = 0.0;
  for (const at::Tensor& weight : weights)
    sum += 2.0 * static_cast<double>(rows) * static_cast<double>(weight.numel());
  return sum;
}

}  // namespace

RowMlpResult mlp_rows(const RowMlp& mlp, const RowMlpWanted& wanted) {
  AIFS_CHECK(!mlp.edges || mlp.norm, "sums at targets without a norm");
  const RowMlp call = in_one_piece(mlp);
  const int64_t rows = call.inputs[0].size(0);
  const RowMlpResult result =
      AT_DISPATCH_FLOATING_TYPES(call.inputs[0].scalar_type(), "mlp_rows",
                                 [&] { return Call<scalar_t>(call).forward(wanted); });
  std::vector<at::Tensor> moved = call.inputs;
  moved.insert(moved.end(), {call.at_target, call.at_source, result.rows, result.sums, result.z});
  moved.insert(moved.end(), result.pre.begin(), result.pre.end());
  count_work("MLP", moved, products_of(call.first, rows) + products_of(call.weights, rows));
  return result;
}

RowMlpGradients mlp_rows_backward(const RowMlp& mlp, const RowMlpResult& kept,
                                  const at::Tensor& d_rows, const at::Tensor& d_sums,
                                  const RowMlpSums& sums, bool inputs_wanted) {
  const RowMlp call = in_one_piece(mlp);
  const at::Tensor at_rows = in_one_piece(d_rows), at_targets = in_one_piece(d_sums);
  const int64_t rows = call.inputs[0].size(0);
  const RowMlpGradients result =
      AT_DISPATCH_FLOATING_TYPES(call.inputs[0].scalar_type(), "mlp_rows_backward", [&] {
        return Call<scalar_t>(call).backward(kept, at_rows, at_targets, sums, inputs_wanted);
      });
  std::vector<at::Tensor> moved = call.inputs;
  moved.insert(moved.end(), {at_rows, at_targets, kept.z, result.at_edges, result.at_target});
  moved.insert(moved.end(), kept.pre.begin(), kept.pre.end());
  moved.insert(moved.end(), result.inputs.begin(), result.inputs.end());
  const double first = products_of(call.first, rows), others = products_of(call.weights, rows);
  // Gradients of weights and of what they multiply, and hidden layers that were not kept.
  double operations = first + 2.0 * others + (inputs_wanted ? first : 0.0);
  if (kept.pre.empty())
    operations += first + others - 2.0 * static_cast<double>(rows * call.weights.back().numel());
  count_work("MLP backward", moved, operations);
  return result;
}

}  // namespace aifs::model
