// SPDX-License-Identifier: Apache-2.0
// The edges between two node sets as one rank sees them: edges that end at its own targets, and the
// sources they start from, wherever these are.
#pragma once

#include <map>
#include <mutex>

#include "model/nodes/graph_tensors.h"
#include "parallel/overlapped_exchange.h"

namespace aifs::model {

class LocalEdges {
 public:
  explicit LocalEdges(const EdgeTensors& edges);

  // The index for so many copies of the graph (batch and ensemble), one after another. Repeated
  // indices are made once and kept. Thread-safe.
  std::shared_ptr<const EdgeIndex> index(int64_t copies) const;

  // The rows that the index numbers as sources, for each copy: from own rows
  // (copies * own sources, C) to (copies * index(1)->num_sources, C). One rank: `own_rows` itself.
  // Differentiable. Collective over the ranks that share a sample.
  at::Tensor sources(const at::Tensor& own_rows, int64_t copies) const;

  // For who starts that exchange itself, of rows side_by_side() (model/nodes/node_rows.h): those
  // received follow own ones in the index, for each copy. Null where rows come in another way, or
  // none do.
  std::shared_ptr<parallel::OverlappedExchange> halo() const;

 private:
  std::shared_ptr<const EdgeIndex> index_;
  std::shared_ptr<const SourceExchange> exchange_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<parallel::OverlappedExchange> halo_;  // made when it is asked for
  mutable std::map<int64_t, std::shared_ptr<const EdgeIndex>> repeated_;
};

}  // namespace aifs::model
