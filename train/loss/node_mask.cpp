// SPDX-License-Identifier: Apache-2.0
#include "train/loss/node_mask.h"

#include <ATen/ATen.h>

#include <vector>

#include "core/check.h"

namespace aifs::train {

at::Tensor node_attribute(const graph::NodeSet& nodes, const std::string& name,
                          const std::string& path) {
  const auto found = nodes.attributes.find(name);
  if (found == nodes.attributes.end()) {
    std::vector<std::string> known;
    for (const auto& [attribute, values] : nodes.attributes)
      known.push_back(attribute);
    throw ConfigError(path, concat("the data nodes have no attribute '", name, "'"),
                      nearest_names(name, known));
  }
  const graph::Attribute& attribute = found->second;
  if (attribute.width != 1 || static_cast<int64_t>(attribute.values.size()) != nodes.num_nodes()) {
    throw ConfigError(path,
                      concat("the attribute '", name, "' has ", attribute.values.size(),
                             " values for ", nodes.num_nodes(), " nodes"),
                      "name one with a single value a node");
  }
  return at::tensor(at::ArrayRef<float>(attribute.values), at::kFloat);
}

at::Tensor node_mask(const graph::NodeSet& nodes, const std::string& name,
                     const std::string& path) {
  const at::Tensor mask = node_attribute(nodes, name, path) != 0.0;
  if (!mask.any().item<bool>()) {
    throw ConfigError(path, concat("'", name, "' marks no node"),
                      "leave it empty where all nodes count");
  }
  return mask;
}

}  // namespace aifs::train
