// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/edge_chunks.h"

#include <ATen/ATen.h>

namespace aifs::model {

std::vector<EdgeChunk> cut_by_targets(const std::shared_ptr<const EdgeIndex>& index,
                                      int64_t count) {
  if (count <= 1 || index->num_targets == 0)
    return {{0, index->num_targets, 0, index->num_edges, index}};
  std::vector<EdgeChunk> chunks;
  const at::Tensor begin_tensor = index->target_begin.cpu();
  const int32_t* begin = begin_tensor.const_data_ptr<int32_t>();
  const int64_t share = index->num_targets / count, rest = index->num_targets % count;
  int64_t first = 0;
  for (int64_t c = 0; c < count; ++c) {
    const int64_t targets = share + (c < rest ? 1 : 0);
    if (targets == 0) break;
    EdgeChunk chunk{first, targets, begin[first], begin[first + targets] - begin[first], nullptr};
    chunk.index =
        EdgeIndex::create(index->source.narrow(0, chunk.first_edge, chunk.num_edges),
                          index->target.narrow(0, chunk.first_edge, chunk.num_edges) - first,
                          index->num_sources, targets)
            ->to(index->source.device());
    chunks.push_back(std::move(chunk));
    first += targets;
  }
  return chunks;
}

namespace {

std::vector<at::Tensor> split(const at::Tensor& rows, const std::vector<EdgeChunk>& chunks,
                              int64_t EdgeChunk::*size) {
  std::vector<int64_t> sizes;
  for (const EdgeChunk& chunk : chunks)
    sizes.push_back(chunk.*size);
  return rows.split_with_sizes(sizes);
}

}  // namespace

std::vector<at::Tensor> split_targets(const at::Tensor& rows,
                                      const std::vector<EdgeChunk>& chunks) {
  return split(rows, chunks, &EdgeChunk::num_targets);
}

std::vector<at::Tensor> split_edges(const at::Tensor& rows, const std::vector<EdgeChunk>& chunks) {
  return split(rows, chunks, &EdgeChunk::num_edges);
}

const std::vector<EdgeChunk>& EdgeChunks::of(const std::shared_ptr<const EdgeIndex>& index) const {
  const std::lock_guard lock(mutex_);
  std::vector<EdgeChunk>& chunks = known_[index];
  if (chunks.empty()) chunks = cut_by_targets(index, count_);
  return chunks;
}

}  // namespace aifs::model
