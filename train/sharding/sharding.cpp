// SPDX-License-Identifier: Apache-2.0
#include "train/sharding/sharding.h"

#include "core/check.h"

namespace aifs::train {

void ShardingOptions::bind(config::Binder& b) {
  b.choice("states", states,
           {"what is shared out over ranks: nothing, the optimiser's moments (ZeRO-1), gradients "
            "too (ZeRO-2), values too (ZeRO-3)"});
  b.integer("ranks", ranks, {.min = 0, .max = 1 << 20},
            {"consecutive ranks that hold everything together, for example those of a host (hybrid "
             "sharding); 0: all",
             "ranks"});
  b.choice("prefetch", prefetch,
           {"with states = parameters, when the next layer is fetched: as it begins, before the "
            "layer at hand runs, or after it was started"});
  b.integer("max_fetched", max_fetched, {.min = 1, .max = 1 << 16},
            {"layers that are fetched at a time, the one at hand included"});
  b.choice("offload", offload,
           {"what is kept in host memory: nothing, the optimiser's moments, or this rank's share "
            "of the values too (states = parameters)"});
}

void ShardingOptions::validate(const std::string& path) const {
  if (offload == Offload::kParameters && states != Sharding::kParameters) {
    throw ConfigError(path + ".offload",
                      concat("values can be kept on the host only where they are fetched layer by "
                             "layer, but states is \"",
                             enum_name(states), "\""),
                      "set states to \"parameters\", or offload to \"optimizer\"");
  }
}

void ReductionOptions::bind(config::Binder& b) {
  b.boolean("overlap", overlap,
            {"reduce gradients in pieces during the backward pass; false: all at its end (with "
             "sharding.states up to optimizer)"});
  b.number(
      "bucket_mb", bucket_mb, {.min = 0.0},
      {"pieces of about this size, reduced as soon as each is complete; 0: 25 MB or, where all "
       "ranks are of one host and gradients are neither shared out nor compressed, five sixths "
       "of them and then the rest; with sharding.states = parameters each layer is a piece",
       "MB"});
  b.choice("compression", compression,
           {"type in which gradients travel, or powersgd: products of thin matrices"});
  b.integer("rank", rank, {.min = 1, .max = 1024}, {"columns of PowerSGD's matrices"});
  b.boolean("warm_start", warm_start, {"PowerSGD starts from the matrices of the step before"});
  b.boolean("error_feedback", error_feedback,
            {"PowerSGD adds what it left out to the gradients of the next step"});
  b.integer("start_step", start_step, {.min = 0}, {"steps before PowerSGD begins", "steps"});
}

double bucket_mb(const ShardingOptions& sharding, const ReductionOptions& reduction, bool one_host,
                 double all_mb) {
  const bool whole = sharding.states <= Sharding::kOptimizer;
  if (whole && !reduction.overlap) return kAllAtOnce_mb;
  if (reduction.bucket_mb > 0.0) return reduction.bucket_mb;
  if (!whole || !one_host) return kBucket_mb;
  // Copy engines do not compress.
  return reduction.compression == Compression::kNone ? kFirstPiece * all_mb : kAllAtOnce_mb;
}

void check_reduction(const ShardingOptions& sharding, const ReductionOptions& reduction) {
  if (reduction.compression == Compression::kPowerSgd && sharding.states != Sharding::kNone) {
    throw ConfigError("parallel.gradients.compression",
                      concat("\"powersgd\" needs whole gradients on every rank, but "
                             "parallel.sharding.states is \"",
                             enum_name(sharding.states), "\""),
                      "use \"bf16\", or set parallel.sharding.states to \"none\"");
  }
}

}  // namespace aifs::train
