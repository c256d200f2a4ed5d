// SPDX-License-Identifier: Apache-2.0
// A destination-sorted edge index cut into ranges of targets, so that a part can work on one
// after another. Sources keep their numbers; a target's edges are all in one piece, hence the same
// sums.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "model/kernels/edge_index.h"

namespace aifs::model {

struct EdgeChunk {
  int64_t first_target = 0, num_targets = 0;
  int64_t first_edge = 0, num_edges = 0;
  std::shared_ptr<const EdgeIndex> index;  // targets and edges numbered from the first of the chunk
};

// `count` balanced ranges: the first ones have one target more. Empty ranges are left out; one
// range is the index itself.
std::vector<EdgeChunk> cut_by_targets(const std::shared_ptr<const EdgeIndex>& index, int64_t count);

// The rows of each chunk, of all targets or of all edges. Split, not narrowed: the gradient of all
// parts is one concatenation.
std::vector<at::Tensor> split_targets(const at::Tensor& rows, const std::vector<EdgeChunk>& chunks);
std::vector<at::Tensor> split_edges(const at::Tensor& rows, const std::vector<EdgeChunk>& chunks);

// Remembers the pieces of the indices it has seen. Thread-safe.
class EdgeChunks {
 public:
  explicit EdgeChunks(int64_t count = 1) : count_(count) {}
  const std::vector<EdgeChunk>& of(const std::shared_ptr<const EdgeIndex>& index) const;

 private:
  int64_t count_;
  mutable std::mutex mutex_;
  mutable std::map<std::shared_ptr<const EdgeIndex>, std::vector<EdgeChunk>> known_;
};

}  // namespace aifs::model
