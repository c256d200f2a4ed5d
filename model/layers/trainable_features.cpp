// SPDX-License-Identifier: Apache-2.0
#include "model/layers/trainable_features.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/base/filling.h"
#include "model/kernels/joined_rows.h"
#include "model/layers/mixed_products.h"

namespace aifs::model {

namespace {

constexpr int64_t kLayoutVersion = 1;  // edge trainables are in target order

at::Tensor own_rows(const at::Tensor& all, const at::Tensor& rows) {
  return rows.defined() ? all.index_select(0, rows) : all;
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Fixed columns and those of a parameter in one type, written once; `working` are the latter's
// values. The gradient is added to the parameter's own in place.
struct Beside : torch::autograd::Function<Beside> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& trainable,
                            const at::Tensor& fixed, const at::Tensor& working, bool filled) {
    ctx->save_for_backward({trainable});
    ctx->saved_data["first"] = fixed.size(1);
    return joined_rows({fixed.unsqueeze(0), working.unsqueeze(0)}, working.options(), filled);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const ParameterGradients d_trainable(saved);
    d_trainable[0].add_(gradients[0].narrow(1, ctx->saved_data["first"].toInt(), saved[0].size(1)));
    return {d_trainable.hand_over()[0], at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

// Fixed features of own rows beside the learnt ones of all rows, in the type of activations.
at::Tensor beside(const ParameterSet& set, const at::Tensor& fixed, const at::Tensor& trainable,
                  const at::Tensor& rows, bool filled = false) {
  const at::ScalarType type = set.activation_type();
  if (trainable.defined() && !rows.defined())
    return Beside::apply(trainable, fixed, set.working(trainable, type), filled);
  const at::Tensor all =
      (trainable.defined() ? at::cat({fixed, own_rows(trainable, rows)}, 1) : fixed).to(type);
  return filled ? pad_columns(all, padding(all, all.size(1))) : all;
}

int64_t joint_width(const at::Tensor& fixed, const at::Tensor& trainable) {
  return fixed.size(1) + (trainable.defined() ? trainable.size(1) : 0);
}

}  // namespace

NodeAttributes::NodeAttributes(const ParameterScope& scope, const std::string& node_set,
                               const NodeTensors& nodes, int64_t num_trainable)
    : set_(&scope.set()), rows_(nodes.rows) {
  // On the CPU, whose sines do not depend on the card.
  const at::Tensor rad = nodes.latlon_rad.cpu();
  const at::Tensor trigonometry = at::cat({at::sin(rad), at::cos(rad)}, 1);
  fixed_ = scope.add_buffer("latlons_" + node_set, trigonometry.to(scope.dtype()));
  if (rows_.defined()) {
    rows_ = scope.set().add_constant(rows_.cpu());
    fixed_ = scope.set().add_constant(own_rows(fixed_, rows_));
  }
  if (num_trainable > 0) {
    trainable_ = (scope / "trainable_tensors" / node_set)
                     .add("trainable", {nodes.total(), num_trainable}, Init::zeros());
  }
}

at::Tensor NodeAttributes::forward() const {
  return beside(*set_, fixed_, trainable_, rows_);
}
int64_t NodeAttributes::width() const {
  return joint_width(fixed_, trainable_);
}

EdgeFeatures::EdgeFeatures(const ParameterScope& scope, const EdgeTensors& edges,
                           int64_t num_trainable)
    : set_(&scope.set()), fixed_(edges.attributes), rows_(edges.rows) {
  scope.add_buffer("trainable_layout_version", at::scalar_tensor(kLayoutVersion, at::kLong));
  if (num_trainable > 0) {
    trainable_ =
        (scope / "trainable").add("trainable", {edges.total, num_trainable}, Init::zeros());
  }
}

at::Tensor EdgeFeatures::forward(bool filled) const {
  return beside(*set_, fixed_, trainable_, rows_, filled);
}
int64_t EdgeFeatures::width() const {
  return joint_width(fixed_, trainable_);
}

}  // namespace aifs::model
