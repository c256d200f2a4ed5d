// SPDX-License-Identifier: Apache-2.0
#include "model/local_edges.h"

#include <ATen/ATen.h>

#include "core/check.h"

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
    AIFS_CHECK(own_rows.size(0) % copies == 0, own_rows.size(0), " rows of ", copies, " copies");
    if (copies == 1) return exchange_rows(own_rows, *exchange_);
    // Rows of all copies of a node travel together.
    const int64_t own = own_rows.size(0) / copies, width = own_rows.size(1);
    const at::Tensor by_node =
        own_rows.view({copies, own, width}).transpose(0, 1).reshape({own, copies * width});
    const at::Tensor all = exchange_rows(by_node, *exchange_);
    return all.view({all.size(0), copies, width}).transpose(0, 1).reshape({-1, width});
  }
  AIFS_CHECK(own_rows.size(0) == copies * index_->num_sources, own_rows.size(0), " rows for ",
             copies, " copies of ", index_->num_sources, " sources");
  return own_rows;
}

}  // namespace aifs::model
