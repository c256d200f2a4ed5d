// SPDX-License-Identifier: Apache-2.0
#include "graph/base/edge_list.h"

#include <algorithm>

namespace aifs::graph {

EdgeList merge_edges(const EdgeList& a, const EdgeList& b) {
  std::vector<uint64_t> keys;
  keys.reserve(a.source_index.size() + b.source_index.size());
  for (const EdgeList* list : {&a, &b}) {
    for (size_t e = 0; e < list->source_index.size(); ++e) {
      keys.push_back((static_cast<uint64_t>(static_cast<uint32_t>(list->source_index[e])) << 32) |
                     static_cast<uint32_t>(list->target_index[e]));
    }
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  EdgeList merged;
  for (const uint64_t key : keys)
    merged.add(static_cast<int32_t>(key >> 32), static_cast<int32_t>(key & 0xFFFFFFFFU));
  return merged;
}

}  // namespace aifs::graph
