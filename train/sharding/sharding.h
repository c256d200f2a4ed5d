// SPDX-License-Identifier: Apache-2.0
// What each rank keeps of values, gradients and moments, and how gradients become those of all:
// the options of `parallel.sharding` and `parallel.gradients`.
#pragma once

#include "core/config.h"

namespace aifs::train {

// Shared out over ranks, each on top of the former: nothing; the optimiser's moments (ZeRO-1); the
// gradients (ZeRO-2); the values (ZeRO-3, FSDP). Rajbhandari et al. 2020, Zhao et al. 2023.
enum class Sharding { kNone, kOptimizer, kGradients, kParameters };

// When the values of the next layer are fetched: when it begins, before the layer at hand runs, or
// after it was started.
enum class Prefetch { kNone, kPre, kPost };

// Says what is kept in the memory of the host instead of the device's.
enum class Offload { kNone, kOptimizer, kParameters };

struct ShardingOptions {
  Sharding states = Sharding::kNone;
  int64_t ranks = 0;  // that hold all of it together; 0: all that have the same parameters
  Prefetch prefetch = Prefetch::kPre;
  int64_t max_fetched = 2;  // layers fetched ahead or in use
  Offload offload = Offload::kNone;

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

// How gradients travel. PowerSGD: Vogels et al. 2019.
enum class Compression { kNone, kBf16, kFp16, kPowerSgd };

// On one host most gradients are reduced in one piece while the backward pass ends: where ranks
// wait for one another often, each of them adds up what the others are late now and then. The rest,
// what comes last, follows at the end. Compressed gradients, which no copy engine sums, are reduced
// at the end.
constexpr double kFirstPiece = 5.0 / 6.0;  // of the gradients
constexpr double kBucket_mb = 25.0;        // elsewhere

struct ReductionOptions {
  bool overlap = true;     // with the backward pass
  double bucket_mb = 0.0;  // 0: as above
  Compression compression = Compression::kNone;
  // PowerSGD
  int64_t rank = 4;
  bool warm_start = true, error_feedback = true;
  int64_t start_step = 10;  // uncompressed steps before

  void bind(config::Binder& b);
};

// MB of gradients, of `all_mb`, that are reduced together, or more than any network has. Where
// gradients are shared out they are never all there at a time.
constexpr double kAllAtOnce_mb = 1e9;
double bucket_mb(const ShardingOptions& sharding, const ReductionOptions& reduction, bool one_host,
                 double all_mb);

// Throws ConfigError (paths under "parallel") for choices that do not go together.
void check_reduction(const ShardingOptions& sharding, const ReductionOptions& reduction);

constexpr auto enum_table(Sharding) {
  using enum Sharding;
  return std::to_array<EnumName<Sharding>>({{kNone, "none"},
                                            {kOptimizer, "optimizer"},
                                            {kGradients, "gradients"},
                                            {kParameters, "parameters"}});
}

constexpr auto enum_table(Prefetch) {
  using enum Prefetch;
  return std::to_array<EnumName<Prefetch>>({{kNone, "none"}, {kPre, "pre"}, {kPost, "post"}});
}

constexpr auto enum_table(Offload) {
  using enum Offload;
  return std::to_array<EnumName<Offload>>(
      {{kNone, "none"}, {kOptimizer, "optimizer"}, {kParameters, "parameters"}});
}

constexpr auto enum_table(Compression) {
  using enum Compression;
  return std::to_array<EnumName<Compression>>(
      {{kNone, "none"}, {kBf16, "bf16"}, {kFp16, "fp16"}, {kPowerSgd, "powersgd"}});
}

}  // namespace aifs::train
