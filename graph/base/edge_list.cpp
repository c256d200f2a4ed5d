// SPDX-License-Identifier: Apache-2.0
#include "graph/base/edge_list.h"

#include <algorithm>

#include "core/run_on_threads.h"
#include "graph/base/large_vector.h"
#include "graph/base/parallel_for.h"

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

EdgeList joined(std::vector<EdgeList> lists, int64_t num_threads) {
  std::vector<int64_t> begin{0};
  for (const EdgeList& list : lists)
    begin.push_back(begin.back() + list.num_edges());
  EdgeList all;
  all.source_index = large_vector<int32_t>(static_cast<size_t>(begin.back()));
  all.target_index = large_vector<int32_t>(static_cast<size_t>(begin.back()));
  run_on_threads(static_cast<int64_t>(lists.size()), effective_threads(num_threads),
                 [&](int64_t i) {
                   const EdgeList list = std::move(lists[static_cast<size_t>(i)]);
                   const int64_t first = begin[static_cast<size_t>(i)];
                   std::copy(list.source_index.begin(), list.source_index.end(),
                             all.source_index.begin() + first);
                   std::copy(list.target_index.begin(), list.target_index.end(),
                             all.target_index.begin() + first);
                 });
  return all;
}

}  // namespace aifs::graph
