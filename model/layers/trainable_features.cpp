// SPDX-License-Identifier: Apache-2.0
#include "model/layers/trainable_features.h"

#include <ATen/ATen.h>

namespace aifs::model {

namespace {

constexpr int64_t kLayoutVersion = 1;  // edge trainables are in target order

at::Tensor own_rows(const at::Tensor& all, const at::Tensor& rows) {
  return rows.defined() ? all.index_select(0, rows) : all;
}

// Fixed features of own rows beside the learnt ones of all rows.
at::Tensor beside(const at::Tensor& fixed, const at::Tensor& trainable, const at::Tensor& rows,
                  at::ScalarType type) {
  return (trainable.defined() ? at::cat({fixed, own_rows(trainable, rows)}, 1) : fixed).to(type);
}

int64_t joint_width(const at::Tensor& fixed, const at::Tensor& trainable) {
  return fixed.size(1) + (trainable.defined() ? trainable.size(1) : 0);
}

}  // namespace

NodeAttributes::NodeAttributes(const ParameterScope& scope, const std::string& node_set,
                               const NodeTensors& nodes, int64_t num_trainable)
    : type_(scope.activation_type()), rows_(nodes.rows) {
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
  return beside(fixed_, trainable_, rows_, type_);
}
int64_t NodeAttributes::width() const {
  return joint_width(fixed_, trainable_);
}

EdgeFeatures::EdgeFeatures(const ParameterScope& scope, const EdgeTensors& edges,
                           int64_t num_trainable)
    : type_(scope.activation_type()), fixed_(edges.attributes), rows_(edges.rows) {
  scope.add_buffer("trainable_layout_version", at::scalar_tensor(kLayoutVersion, at::kLong));
  if (num_trainable > 0) {
    trainable_ =
        (scope / "trainable").add("trainable", {edges.total, num_trainable}, Init::zeros());
  }
}

at::Tensor EdgeFeatures::forward() const {
  return beside(fixed_, trainable_, rows_, type_);
}
int64_t EdgeFeatures::width() const {
  return joint_width(fixed_, trainable_);
}

}  // namespace aifs::model
