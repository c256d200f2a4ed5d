// SPDX-License-Identifier: Apache-2.0
#include "model/layers/trainable_features.h"

#include <ATen/ATen.h>

namespace aifs::model {

namespace {

constexpr int64_t kLayoutVersion = 1;  // edge trainables are in target order

at::Tensor beside(const at::Tensor& fixed, const at::Tensor& trainable, at::ScalarType type) {
  return (trainable.defined() ? at::cat({fixed, trainable}, 1) : fixed).to(type);
}

int64_t joint_width(const at::Tensor& fixed, const at::Tensor& trainable) {
  return fixed.size(1) + (trainable.defined() ? trainable.size(1) : 0);
}

}  // namespace

NodeAttributes::NodeAttributes(const ParameterScope& scope, const std::string& node_set,
                               const at::Tensor& latlon_rad, int64_t num_trainable)
    : type_(scope.activation_type()) {
  // On the CPU, whose sines do not depend on the card.
  const at::Tensor rad = latlon_rad.cpu();
  const at::Tensor trigonometry = at::cat({at::sin(rad), at::cos(rad)}, 1);
  fixed_ = scope.add_buffer("latlons_" + node_set, trigonometry.to(scope.dtype()));
  if (num_trainable > 0) {
    trainable_ = (scope / "trainable_tensors" / node_set)
                     .add("trainable", {latlon_rad.size(0), num_trainable}, Init::zeros());
  }
}

at::Tensor NodeAttributes::forward() const {
  return beside(fixed_, trainable_, type_);
}
int64_t NodeAttributes::width() const {
  return joint_width(fixed_, trainable_);
}

EdgeFeatures::EdgeFeatures(const ParameterScope& scope, const EdgeTensors& edges,
                           int64_t num_trainable)
    : type_(scope.activation_type()), fixed_(edges.attributes) {
  scope.add_buffer("trainable_layout_version", at::scalar_tensor(kLayoutVersion, at::kLong));
  if (num_trainable > 0) {
    trainable_ = (scope / "trainable")
                     .add("trainable", {edges.index->num_edges, num_trainable}, Init::zeros());
  }
}

at::Tensor EdgeFeatures::forward() const {
  return beside(fixed_, trainable_, type_);
}
int64_t EdgeFeatures::width() const {
  return joint_width(fixed_, trainable_);
}

}  // namespace aifs::model
