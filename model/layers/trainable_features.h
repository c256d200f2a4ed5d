// SPDX-License-Identifier: Apache-2.0
// Fixed features of nodes and edges with learnt ones beside them (fixed first, learnt last), given
// in the type of activations.
#pragma once

#include "model/base/parameters.h"
#include "model/nodes/graph_tensors.h"

namespace aifs::model {

// [sin lat, sin lon, cos lat, cos lon | trainable] per node of one set, (N, 4 + P), or this rank's
// of these. Every rank keeps the learnt features of all nodes, as every other parameter.
// The trigonometric columns are a buffer `node_attributes.latlons_<set>`.
class NodeAttributes {
 public:
  NodeAttributes() = default;
  NodeAttributes(const ParameterScope& scope, const std::string& node_set, const NodeTensors& nodes,
                 int64_t num_trainable);
  at::Tensor forward() const;
  int64_t width() const;

 private:
  const ParameterSet* set_ = nullptr;
  at::Tensor fixed_, trainable_, rows_;
};

// [attributes | trainable] per edge in target order, (M, D + P), or this rank's of these.
class EdgeFeatures {
 public:
  EdgeFeatures() = default;
  // Registers trainable_layout_version and, if num_trainable > 0, trainable.trainable.
  EdgeFeatures(const ParameterScope& scope, const EdgeTensors& edges, int64_t num_trainable);
  // `filled`: filled up behind (model/base/filling.h).
  at::Tensor forward(bool filled = false) const;
  int64_t width() const;

 private:
  const ParameterSet* set_ = nullptr;
  at::Tensor fixed_, trainable_, rows_;
};

}  // namespace aifs::model
