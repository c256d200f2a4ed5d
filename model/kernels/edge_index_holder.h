// SPDX-License-Identifier: Apache-2.0
// Keeps an EdgeIndex alive in the saved data of an autograd node.
#pragma once

#include <ATen/core/ivalue.h>

#include "model/kernels/edge_index.h"

namespace aifs::model {

struct EdgeIndexHolder : torch::CustomClassHolder {
  std::shared_ptr<const EdgeIndex> edges;
};

inline at::IValue hold(const std::shared_ptr<const EdgeIndex>& edges) {
  auto holder = c10::make_intrusive<EdgeIndexHolder>();
  holder->edges = edges;
  return at::IValue::make_capsule(std::move(holder));
}

inline std::shared_ptr<const EdgeIndex> held_edges(const at::IValue& value) {
  return c10::static_intrusive_pointer_cast<EdgeIndexHolder>(value.toCapsule())->edges;
}

}  // namespace aifs::model
