// SPDX-License-Identifier: Apache-2.0
#include "model/nodes/field_rows.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/check.h"
#include "model/kernels/joined_rows.h"

namespace aifs::model {

at::Tensor rows_as_fields(const at::Tensor& rows, at::IntArrayRef sizes) {
  return rows.narrow(1, 0, sizes[1] * sizes[4])
      .unflatten(1, {sizes[1], sizes[4]})
      .unflatten(0, {sizes[0], sizes[2], sizes[3]})
      .permute({0, 3, 1, 2, 4});
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct FieldRows : torch::autograd::Function<FieldRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& fields,
                            const at::Tensor& beside, bool filled) {
    variable_list pieces;
    for (const at::Tensor& time : fields.unbind(1))
      pieces.push_back(time.flatten(1, 2));
    pieces.push_back(beside.unflatten(0, {fields.size(0), fields.size(2) * fields.size(3)}));
    const at::Tensor rows = joined_rows(pieces, beside.options(), filled);
    ctx->saved_data["sizes"] = fields.sizes().vec();
    ctx->saved_data["more"] = beside.size(1);
    ctx->saved_data["type"] = static_cast<int64_t>(fields.scalar_type());
    return rows;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const std::vector<int64_t> sizes = ctx->saved_data["sizes"].toIntVector();
    const auto type = static_cast<at::ScalarType>(ctx->saved_data["type"].toInt());
    const int64_t width = sizes[1] * sizes[4];
    const at::Tensor& g = gradients[0];
    return {ctx->needs_input_grad(0) ? rows_as_fields(g, sizes).to(type) : at::Tensor(),
            g.narrow(1, width, ctx->saved_data["more"].toInt()), at::Tensor()};
  }
};

}  // namespace

at::Tensor field_rows(const at::Tensor& fields, const at::Tensor& beside, bool filled) {
  AIFS_CHECK(fields.dim() == 5 && beside.dim() == 2 &&
                 beside.size(0) == fields.size(0) * fields.size(2) * fields.size(3),
             beside.sizes(), " beside fields of shape ", fields.sizes());
  return FieldRows::apply(fields, beside, filled);
}

}  // namespace aifs::model
