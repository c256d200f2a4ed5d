// SPDX-License-Identifier: Apache-2.0
#include "model/nodes/local_edges.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "model/nodes/node_rows.h"

namespace aifs::model {

namespace {

at::Tensor exchange_rows(const at::Tensor& own, const SourceExchange& exchange) {
  if (exchange.halo) return parallel::with_received_rows(own, exchange.halo);
  return parallel::all_gather_rows(own, exchange.gather_counts, *exchange.group);
}

}  // namespace

LocalEdges::LocalEdges(const EdgeTensors& edges) : index_(edges.index), exchange_(edges.exchange) {}

std::shared_ptr<const EdgeIndex> LocalEdges::index(int64_t copies) const {
  if (copies == 1) return index_;
  const std::lock_guard lock(mutex_);
  auto& entry = repeated_[copies];
  if (!entry) entry = index_->repeat(copies)->to(index_->source.device());
  return entry;
}

at::Tensor LocalEdges::sources(const at::Tensor& own_rows, int64_t copies) const {
  if (exchange_) {
    return copy_after_copy(exchange_rows(side_by_side(own_rows, copies), *exchange_), copies);
  }
  AIFS_CHECK(own_rows.size(0) == copies * index_->num_sources, own_rows.size(0), " rows for ",
             copies, " copies of ", index_->num_sources, " sources");
  return own_rows;
}

std::shared_ptr<parallel::OverlappedExchange> LocalEdges::halo() const {
  if (!exchange_ || !exchange_->halo) return nullptr;
  const std::lock_guard lock(mutex_);
  if (!halo_) halo_ = std::make_shared<parallel::OverlappedExchange>(exchange_->halo);
  return halo_;
}

}  // namespace aifs::model
