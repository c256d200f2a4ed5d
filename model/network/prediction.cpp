// SPDX-License-Identifier: Apache-2.0
#include "model/network/prediction.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "core/check.h"
#include "model/base/filling.h"
#include "model/nodes/field_rows.h"

#ifdef AIFS_HAVE_CUDA
#include "model/kernels/count_work.h"
#include "model/kernels/cuda/prediction.h"
#include "model/kernels/cuda_call.h"
#endif

namespace aifs::model {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

enum Dimension { kBatch, kTime, kMember, kNode, kVariable };

// How a call finds its way: what has no gradient.
struct Layout {
  std::vector<int64_t> sizes;  // of the fields
  at::ScalarType type;
  GuessColumns columns;
};

#ifdef AIFS_HAVE_CUDA

// The call as the kernels know it; nothing where they do not fit.
std::optional<cuda::Prediction> kernel_call(const at::Tensor& rows, const Layout& layout,
                                            const at::Tensor& guess) {
  const std::optional<cuda::ElementType> type = element_type(rows.scalar_type());
  const bool fits = rows.is_cuda() && type && layout.type == at::kFloat && rows.stride(1) == 1 &&
                    layout.sizes[kTime] == 1 && rows.size(0) < int64_t{1} << 32;
  const bool guess_fits =
      !guess.defined() || (guess.scalar_type() == at::kFloat && guess.stride(kVariable) == 1);
  if (!fits || !guess_fits) return std::nullopt;
  cuda::Prediction p{.rows = rows.size(0),
                     .members = static_cast<uint32_t>(layout.sizes[kMember]),
                     .nodes = static_cast<uint32_t>(layout.sizes[kNode]),
                     .variables = static_cast<int>(layout.sizes[kVariable]),
                     .row_width = static_cast<int>(rows.stride(0)),
                     .type = *type};
  if (guess.defined()) {
    p.guess = guess.const_data_ptr<float>();
    p.batch_stride = guess.stride(kBatch);
    p.member_stride = guess.stride(kMember);
    p.node_stride = guess.stride(kNode);
    p.guess_column = layout.columns.by_output().const_data_ptr<int32_t>();
  }
  return p;
}

#endif

at::Tensor fields_with_guess(const at::Tensor& rows, const Layout& layout,
                             const at::Tensor& guess) {
  const at::Tensor y = at::empty(layout.sizes, rows.options().dtype(layout.type));
#ifdef AIFS_HAVE_CUDA
  if (const auto p = kernel_call(rows, layout, guess)) {
    cuda::predict(*p, rows.const_data_ptr(), y.data_ptr<float>(), stream_of(y));
    count_work("rows to fields", {rows, y, guess.defined() ? y : guess});
    return y;
  }
#endif
  y.copy_(rows_as_fields(rows, layout.sizes));
  if (guess.defined()) {
    const at::Tensor some = guess.index_select(kVariable, layout.columns.columns());
    y.index_add_(kVariable, layout.columns.outputs(),
                 some.expand({-1, layout.sizes[kTime], -1, -1, -1}));
  }
  return y;
}

// The gradient of rows `width` wide from that of the fields.
at::Tensor rows_of_fields(const at::Tensor& d, const at::TensorOptions& options, int64_t width,
                          const Layout& layout) {
  const at::Tensor rows = at::empty(
      {layout.sizes[kBatch] * layout.sizes[kMember] * layout.sizes[kNode], width}, options);
#ifdef AIFS_HAVE_CUDA
  const auto p = kernel_call(rows, layout, {});
  if (p && d.is_contiguous()) {
    cuda::predict_backward(*p, d.const_data_ptr<float>(), rows.data_ptr(), stream_of(d));
    count_work("rows to fields", {d, rows});
    return rows;
  }
#endif
  const int64_t used = layout.sizes[kTime] * layout.sizes[kVariable];
  rows_as_fields(rows, layout.sizes).copy_(d);
  if (width > used) rows.narrow(1, used, width - used).zero_();
  return rows;
}

struct Predict : torch::autograd::Function<Predict> {
  static at::Tensor forward(AutogradContext* ctx, at::TensorList rows_and_guess,
                            const Layout& layout, const std::vector<Bounding>& boundings,
                            bool differentiated) {
    const at::Tensor rows = rows_and_guess[0];
    const at::Tensor guess = rows_and_guess.size() > 1 ? rows_and_guess[1] : at::Tensor();
    const at::Tensor y = fields_with_guess(rows, layout, guess);
    variable_list saved;
    for (const Bounding& bounding : boundings) {
      const at::Tensor slope = bounding.limit_(y, differentiated);
      saved.insert(saved.end(), {bounding.columns(), slope});
    }
    if (!differentiated) return y;
    ctx->save_for_backward(std::move(saved));
    auto holder = c10::make_intrusive<Holder>();
    holder->layout = layout;
    holder->options = rows.options();
    holder->width = rows.size(1);
    if (guess.defined()) holder->guess_sizes = guess.sizes().vec();
    ctx->saved_data["call"] = c10::IValue::make_capsule(std::move(holder));
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const auto holder =
        c10::static_intrusive_pointer_cast<Holder>(ctx->saved_data["call"].toCapsule());
    const Layout& layout = holder->layout;
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor& d = gradients[0];
    const bool has_guess = !holder->guess_sizes.empty();
    const bool of_guess = has_guess && ctx->needs_input_grad(1);
    // Limited columns are few: they are put into what is made of the gradient.
    at::Tensor d_rows, whole = of_guess ? d.clone() : d;
    if (ctx->needs_input_grad(0))
      d_rows = rows_of_fields(d, holder->options, holder->width, layout);
    for (size_t i = 0; i < saved.size(); i += 2) {
      const at::Tensor some = d.index_select(kVariable, saved[i]) * saved[i + 1];
      if (d_rows.defined()) {
        rows_as_fields(d_rows, layout.sizes)
            .index_copy_(kVariable, saved[i], some.to(d_rows.scalar_type()));
      }
      if (of_guess) whole.index_copy_(kVariable, saved[i], some);
    }
    at::Tensor d_guess;
    if (of_guess) {
      const at::Tensor some =
          whole.index_select(kVariable, layout.columns.outputs()).sum(kTime, /*keepdim=*/true);
      d_guess = at::zeros(holder->guess_sizes, some.options())
                    .index_add_(kVariable, layout.columns.columns(), some);
    }
    variable_list result{d_rows};
    if (has_guess) result.push_back(d_guess);
    result.resize(result.size() + 3);  // of layout, boundings and differentiated
    return result;
  }

  struct Holder : torch::CustomClassHolder {
    Layout layout;
    at::TensorOptions options;  // of the rows
    int64_t width = 0;
    std::vector<int64_t> guess_sizes;
  };
};

}  // namespace

GuessColumns::GuessColumns(ParameterSet& set, const std::vector<int64_t>& outputs,
                           const std::vector<int64_t>& columns, int64_t num_outputs) {
  AIFS_CHECK(outputs.size() == columns.size(), columns.size(), " columns for ", outputs.size(),
             " variables");
  std::vector<int32_t> by_output(static_cast<size_t>(num_outputs), -1);
  for (size_t i = 0; i < outputs.size(); ++i)
    by_output.at(static_cast<size_t>(outputs[i])) = static_cast<int32_t>(columns[i]);
  outputs_ = set.add_constant(at::tensor(outputs, at::kLong));
  columns_ = set.add_constant(at::tensor(columns, at::kLong));
  by_output_ = set.add_constant(at::tensor(at::ArrayRef<int32_t>(by_output), at::kInt));
}

at::Tensor predict(const at::Tensor& rows, at::IntArrayRef sizes, at::ScalarType type,
                   const at::Tensor& guess, const GuessColumns& columns,
                   const std::vector<Bounding>& boundings) {
  AIFS_CHECK(sizes.size() == 5 && rows.dim() == 2 &&
                 rows.size(0) == sizes[kBatch] * sizes[kMember] * sizes[kNode] &&
                 rows.size(1) >= sizes[kTime] * sizes[kVariable],
             "rows of shape ", rows.sizes(), " as fields of shape ", sizes);
  // Those that need more than their own columns, or columns of others, come after one another.
  const bool at_once = independent(boundings);
  const bool differentiated = at::GradMode::is_enabled() &&
                              (rows.requires_grad() || (guess.defined() && guess.requires_grad()));
  variable_list given{rows};
  if (guess.defined()) given.push_back(guess);
  at::Tensor y = Predict::apply(at::TensorList(given), Layout{sizes.vec(), type, columns},
                                at_once ? boundings : std::vector<Bounding>(), differentiated);
  if (at_once) return y;
  for (const Bounding& bounding : boundings)
    y = bounding.forward(y);
  return y;
}

}  // namespace aifs::model
