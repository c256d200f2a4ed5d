// SPDX-License-Identifier: Apache-2.0
#include "plan/layout.h"

#include <algorithm>

namespace aifs::plan {

void Layout::bind(config::Binder& b) {
  constexpr int64_t kMost = 1 << 20;
  b.integer("model", model, {.min = 1, .max = kMost}, {"ranks that share a sample", "ranks"});
  b.integer("data", data, {.min = 1, .max = kMost}, {"replicas"});
  b.integer("tensor", tensor, {.min = 1, .max = kMost}, {"ranks that share every product"});
  b.integer("pipeline", pipeline, {.min = 1, .max = kMost}, {"ranks with some layers each"});
  b.choice("sharding", sharding, {"what replicas share out of weights and their states"});
  b.number(
      "bucket_mb", bucket_mb, {.min = 0.0},
      {"pieces in which gradients are reduced during the backward pass; 0: see first_piece", "MB"});
  b.number(
      "first_piece", first_piece, {.min = 0.0, .max = 1.0},
      {"share of the gradients that is reduced in one piece during the backward pass, the rest "
       "at its end"});
  b.choice("compression", compression, {"of gradients on their way"});
  b.integer("powersgd_rank", powersgd_rank, {.min = 1, .max = 4096}, {"of the factors"});
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
