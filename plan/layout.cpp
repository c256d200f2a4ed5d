// SPDX-License-Identifier: Apache-2.0
#include "plan/layout.h"

#include <algorithm>
#include <cmath>

namespace aifs::plan {

void Layout::bind(config::Binder& b) {
  constexpr int64_t kMost = 1 << 20;
  b.integer("model", model, {.min = 1, .max = kMost}, {"ranks that share a sample", "ranks"});
  b.integer("data", data, {.min = 1, .max = kMost}, {"replicas"});
  b.integer("tensor", tensor, {.min = 1, .max = kMost}, {"ranks that share every product"});
  b.integer("pipeline", pipeline, {.min = 1, .max = kMost}, {"ranks with some layers each"});
  b.choice("sharding", sharding, {"what replicas share out of weights and their states"});
  b.number("bucket_mb", bucket_mb, {.min = 0.0},
           {"pieces in which gradients are reduced during the backward pass; 0: at its end", "MB"});
  b.number("first_piece", first_piece, {.min = 0.0, .max = 1.0},
           {"on one host: share of the gradients that is reduced in one piece during the backward "
            "pass, the rest at its end; 0: bucket_mb counts"});
  b.choice("compression", compression, {"of gradients on their way"});
  b.integer("powersgd_rank", powersgd_rank, {.min = 1, .max = 4096}, {"of the factors"});
}

Layout::Pieces Layout::pieces(double bytes, int64_t ranks_per_node) const {
  const bool whole = sharding == Sharding::kNone || sharding == Sharding::kOptimizer;
  const Pieces all{1.0, bytes, bytes};
  if (first_piece > 0.0 && whole && ranks() <= ranks_per_node) {
    if (compression != Compression::kNone) return all;
    return {2.0, first_piece * bytes, (1.0 - first_piece) * bytes};
  }
  const double bucket = bucket_mb * 1e6;
  if (bucket <= 0.0 || bytes <= bucket) return all;
  const double count = std::ceil(bytes / bucket);
  return {count, bucket, bytes - (count - 1.0) * bucket};
}

int64_t Layout::shards(int64_t ranks_per_node) const {
  switch (sharding) {
    case Sharding::kNone:
      return 1;
    case Sharding::kHybrid:
      return std::min(holders(), ranks_per_node);
    default:
      return holders();
  }
}

}  // namespace aifs::plan
