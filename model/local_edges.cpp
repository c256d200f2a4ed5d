// SPDX-License-Identifier: Apache-2.0
#include "model/local_edges.h"

#include <ATen/ATen.h>

#include "core/check.h"

namespace aifs::model {

std::shared_ptr<const EdgeIndex> LocalEdges::index(int64_t copies) const {
  if (copies == 1) return index_;
  const std::lock_guard lock(mutex_);
  auto& entry = repeated_[copies];
  if (!entry) entry = index_->repeat(copies)->to(index_->source.device());
  return entry;
}

at::Tensor LocalEdges::sources(const at::Tensor& own_rows, int64_t copies) const {
  AIFS_CHECK(own_rows.size(0) == copies * index_->num_sources, own_rows.size(0), " rows for ",
             copies, " copies of ", index_->num_sources, " sources");
  return own_rows;
}

}  // namespace aifs::model
