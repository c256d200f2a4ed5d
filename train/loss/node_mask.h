// SPDX-License-Identifier: Apache-2.0
// Attributes of data nodes that options name: weights, and masks of nodes.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "graph/base/graph.h"

namespace aifs::train {

// (N) fp32 on the CPU. Throws ConfigError with this path of the option, and the nearest names,
// where the nodes have no attribute of the name, and for one of several values a node.
at::Tensor node_attribute(const graph::NodeSet& nodes, const std::string& name,
                          const std::string& path);

// (N) bool on the CPU: true where the attribute is not 0. Throws ConfigError as node_attribute()
// does, and where that is nowhere.
at::Tensor node_mask(const graph::NodeSet& nodes, const std::string& name, const std::string& path);

}  // namespace aifs::train
