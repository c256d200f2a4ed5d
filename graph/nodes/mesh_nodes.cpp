// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/mesh_nodes.h"

#include <algorithm>

#include "core/check.h"

namespace aifs::graph {

std::vector<uint8_t> MeshNodes::mask(const std::string& name) const {
  const auto found = set.attributes.find(name);
  if (found == set.attributes.end() || found->second.width != 1) {
    std::vector<std::string> known;
    for (const auto& [key, attribute] : set.attributes)
      known.push_back(key);
    throw Error(concat("nodes '", set.name, "' have no mask '", name, "'"),
                nearest_names(name, known));
  }
  const std::vector<float>& values = found->second.values;
  std::vector<uint8_t> bytes(values.size());
  std::transform(values.begin(), values.end(), bytes.begin(),
                 [](float value) { return value != 0 ? uint8_t{1} : uint8_t{0}; });
  return bytes;
}

}  // namespace aifs::graph
