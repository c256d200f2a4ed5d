// SPDX-License-Identifier: Apache-2.0
// Directed edges as two index arrays: what the edge builders return.
#pragma once

#include <cstdint>
#include <vector>

namespace aifs::graph {

struct EdgeList {
  std::vector<int32_t> source_index, target_index;  // (M)

  int64_t num_edges() const { return static_cast<int64_t>(source_index.size()); }
  void add(int32_t source, int32_t target) {
    source_index.push_back(source);
    target_index.push_back(target);
  }
};

// What several builders between the same node sets give together: every edge once, sorted by
// (source, target).
EdgeList merge_edges(const EdgeList& a, const EdgeList& b);

// One list after the other; they are emptied on the way.
EdgeList joined(std::vector<EdgeList> lists, int64_t num_threads);

}  // namespace aifs::graph
