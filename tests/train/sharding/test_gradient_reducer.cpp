// SPDX-License-Identifier: Apache-2.0
#include "train/sharding/gradient_reducer.h"

#include <ATen/ATen.h>

#include <limits>

#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"
#include "tests/train/sharding/shard_samples.h"

using namespace aifs;
using namespace aifs::train;
using parallel::Communicator;
using test::hold;
using test::ShardSamples;

namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kBucketMb = 0.001;  // of 125 elements

at::Tensor slope_of(const model::Parameter& parameter) {
  return test::random_tensor(parameter.tensor.sizes(), static_cast<uint64_t>(parameter.offset));
}

// A function of the parameters whose gradient is `factor` times their slopes.
at::Tensor linear(const model::ParameterSet& set, double factor, const std::string& without = "") {
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (const model::Parameter& parameter : set.entries()) {
    if (parameter.name != without) sum = sum + (parameter.tensor * slope_of(parameter)).sum();
  }
  return sum * factor;
}

// Slopes as they lie in the flat buffers.
at::Tensor flat_slopes(const model::ParameterSet& set) {
  const at::Tensor flat = at::zeros({set.flat_size()}, at::kDouble);
  for (const model::Parameter& parameter : set.entries())
    model::view_in(flat, parameter).copy_(slope_of(parameter));
  return flat;
}

struct Replica {
  ShardSamples set;
  parallel::ProcessMesh mesh;
  ParameterShards shards;
  GradientReducer reducer;

  Replica(Communicator& world, Sharding states, const ReductionOptions& options,
          double bucket_mb = kBucketMb)
      : mesh(world, {.model = 1, .data = world.size()}),
        shards(set, {.states = states}, bucket_mb, mesh),
        reducer(set, shards, options, mesh, 3) {}

  // Slopes times `factor` in every bucket, within `limit` of the largest one.
  void check(double factor, double limit) const {
    const at::Tensor expected = flat_slopes(set) * factor;
    const double largest = expected.abs().max().item<double>();
    for (const ShardBucket& bucket : shards.layout().buckets()) {
      const at::Tensor own = expected.narrow(0, bucket.own_begin, bucket.own_size);
      hold(own.numel() == 0 ||
               test::max_difference(reducer.own_gradients(bucket), own) <= limit * largest,
           "the own gradients of a bucket");
    }
  }
};

}  // namespace

// Rank r has (r + 1) times the slopes in each of two passes: their mean over ranks of the sums over
// passes is (ranks + 1) times the slopes. The second step reduces in the order that the first one
// has learnt.
TEST_CASE("gradients are sums over passes and means over replicas, whatever is sharded",
          "[train]") {
  for (const int ranks : {1, 2, 3}) {
    for (const Sharding states : {Sharding::kNone, Sharding::kOptimizer, Sharding::kGradients}) {
      for (const double bucket_mb : {kBucketMb, kAllAtOnce_mb}) {
        parallel::run_as_threads(ranks, [&](Communicator& world) {
          Replica replica(world, states, {}, bucket_mb);
          for (int64_t step = 0; step < 2; ++step) {
            replica.reducer.start_step(step);
            for (const bool last : {false, true}) {
              replica.reducer.start_pass(0, last);
              linear(replica.set, world.rank() + 1.0).backward();
              replica.reducer.end_pass();
            }
            replica.check(ranks + 1.0, 8.0 * kEpsilon * ranks);
          }
        });
      }
    }
  }
}

TEST_CASE("all own gradients together are those of the buckets", "[train]") {
  parallel::run_as_threads(2, [](Communicator& world) {
    for (const Sharding states : {Sharding::kNone, Sharding::kOptimizer, Sharding::kGradients}) {
      Replica replica(world, states, {});
      replica.reducer.start_step(0);
      replica.reducer.start_pass(0, true);
      linear(replica.set, 1.0).backward();
      replica.reducer.end_pass();
      std::vector<at::Tensor> parts;
      for (const ShardBucket& bucket : replica.shards.layout().buckets())
        parts.push_back(replica.reducer.own_gradients(bucket));
      const OwnGradients own = replica.reducer.own_gradients();
      hold(at::equal(at::cat(own.whole), at::cat(parts)) && own.sliced.empty(), "own gradients");
    }
  });
}

TEST_CASE("gradients sent in 16 bits are rounded once a rank", "[train]") {
  for (const auto& [compression, rounding] :
       {std::pair{Compression::kBf16, 0x1p-8}, std::pair{Compression::kFp16, 0x1p-11}}) {
    parallel::run_as_threads(2, [&](Communicator& world) {
      Replica replica(world, Sharding::kNone, {.compression = compression});
      replica.reducer.start_step(0);
      replica.reducer.start_pass(0, true);
      linear(replica.set, world.rank() + 1.0).backward();
      replica.reducer.end_pass();
      // Each addend is rounded, and their sum.
      replica.check(1.5, 2.0 * rounding * (1.0 + rounding));
    });
  }
}

TEST_CASE("a parameter that gets no gradient is named", "[train]") {
  const auto body = [](Communicator& world) {
    Replica replica(world, Sharding::kNone, {});
    replica.reducer.start_step(0);
    replica.reducer.start_pass(0, true);
    linear(replica.set, 1.0, "two.bias").backward();
    replica.reducer.end_pass();
  };
  REQUIRE_THROWS_WITH(parallel::run_as_threads(2, body),
                      ContainsSubstring("1 parameters got no gradient: 'two.bias'"));
}

TEST_CASE("the others' pass ends where a rank gives it up, whether its order is known or not",
          "[train]") {
  for (const Sharding states : {Sharding::kNone, Sharding::kOptimizer, Sharding::kGradients}) {
    for (const int failing : {0, 1}) {
      for (const int64_t good_steps : {0, 1}) {
        parallel::run_as_threads(2, [&](Communicator& world) {
          Replica replica(world, states, {});
          for (int64_t step = 0; step <= good_steps; ++step) {
            replica.reducer.start_step(step);
            replica.reducer.start_pass(0, true);
            if (step == good_steps && world.rank() == failing) {
              replica.reducer.abandon_pass();
              continue;
            }
            linear(replica.set, 2.0).backward();
            replica.reducer.end_pass();
          }
          replica.check(1.0, 8.0 * kEpsilon);  // the failing rank has added nothing
        });
      }
    }
  }
}

TEST_CASE("what a step sends is described", "[train]") {
  parallel::run_as_threads(2, [](Communicator& world) {
    const Replica plain(world, Sharding::kNone, {}, kAllAtOnce_mb);
    const Replica halved(world, Sharding::kGradients, {.compression = Compression::kBf16});
    const std::string buckets = concat(halved.shards.layout().buckets().size(), " buckets, ");
    hold(plain.reducer.describe() == "1 buckets, 0.0 MB a step as fp64", plain.reducer.describe());
    hold(halved.reducer.describe() == buckets + "0.0 MB a batch as bf16",
         halved.reducer.describe());
  });
}
