// SPDX-License-Identifier: Apache-2.0
// How ranks divide the work, as the estimates see it: ranks = model x tensor x pipeline x data,
// consecutive ranks first in a model group.
#pragma once

#include "core/config.h"

namespace aifs::plan {

// Says what replicas of the weights share out of what each would hold alone (ZeRO stages 0 to 3);
// hybrid: parameters, within a node only.
enum class Sharding { kNone, kOptimizer, kGradients, kParameters, kHybrid };
enum class Compression { kNone, kBf16, kFp16, kPowerSgd };

struct Layout {
  int64_t model = 1;     // ranks that share a sample by its nodes
  int64_t data = 1;      // replicas
  int64_t tensor = 1;    // ranks that share every product
  int64_t pipeline = 1;  // ranks with some layers each
  Sharding sharding = Sharding::kNone;
  // Gradients are reduced in such pieces while the backward pass goes on; 0: at its end.
  double bucket_mb = 0.0;
  // On one host, unless gradients are shared out: a first piece of this share, and the rest at the
  // end of the pass, or all if they are compressed. 0: as elsewhere.
  double first_piece = 0.0;
  Compression compression = Compression::kNone;
  int64_t powersgd_rank = 4;

  void bind(config::Binder& b);
  int64_t ranks() const { return model * data * tensor * pipeline; }
  // Ranks that hold the same weights.
  int64_t holders() const { return model * data; }
  // Ranks that share them out.
  int64_t shards(int64_t ranks_per_node) const;
  // How gradients of so many bytes are reduced; one piece: at the end of the backward pass.
  struct Pieces {
    double count = 1.0, largest_bytes = 0.0, last_bytes = 0.0;
  };
  Pieces pieces(double bytes, int64_t ranks_per_node) const;
};

constexpr auto enum_table(Sharding) {
  using enum Sharding;
  return std::to_array<EnumName<Sharding>>({{kNone, "none"},
                                            {kOptimizer, "optimizer"},
                                            {kGradients, "gradients"},
                                            {kParameters, "parameters"},
                                            {kHybrid, "hybrid"}});
}

constexpr auto enum_table(Compression) {
  using enum Compression;
  return std::to_array<EnumName<Compression>>(
      {{kNone, "none"}, {kBf16, "bf16"}, {kFp16, "fp16"}, {kPowerSgd, "powersgd"}});
}

}  // namespace aifs::plan
