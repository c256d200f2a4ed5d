// SPDX-License-Identifier: Apache-2.0
#include "train/sharding/parameter_shards.h"

#include <ATen/ATen.h>

#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"
#include "tests/train/sharding/shard_samples.h"

using namespace aifs;
using namespace aifs::train;
using parallel::Communicator;
using test::hold;
using test::ShardSamples;

namespace {

constexpr double kBucketMb = 0.001;  // of 125 elements

bool is_here(const model::Parameter& parameter) {
  return parameter.tensor.storage().nbytes() > 0;
}

std::vector<at::Tensor> values_of(const model::ParameterSet& set) {
  std::vector<at::Tensor> values;
  for (const model::Parameter& parameter : set.entries())
    values.push_back(parameter.tensor.detach().clone());
  return values;
}

void on_ranks(int ranks, const std::function<void(const parallel::ProcessMesh&)>& body) {
  parallel::run_as_threads(ranks, [&](Communicator& world) {
    body(parallel::ProcessMesh(world, {.model = 1, .data = ranks}));
  });
}

}  // namespace

TEST_CASE("own parts of all ranks are the whole", "[train]") {
  for (const int ranks : {1, 2, 3}) {
    on_ranks(ranks, [](const parallel::ProcessMesh& mesh) {
      ShardSamples set;
      const ParameterShards shards(set, {.states = Sharding::kOptimizer}, kBucketMb, mesh);
      const at::Tensor numbers = at::arange(static_cast<double>(set.flat_size()), at::kDouble);
      const at::Tensor own = shards.own(numbers);
      hold(own.numel() == shards.layout().local_size(), "the size of an own part");
      hold(at::equal(shards.whole(own), numbers), "the whole of all own parts");
    });
  }
}

TEST_CASE("each rank's update of its own part reaches all ranks", "[train]") {
  on_ranks(3, [](const parallel::ProcessMesh& mesh) {
    ShardSamples set;
    ParameterShards shards(set, {.states = Sharding::kOptimizer}, kBucketMb, mesh);
    const at::Tensor expected = set.flat_values().clone();
    for (const ShardBucket& bucket : shards.layout().buckets()) {
      shards.own_values(bucket).add_(mesh.data().rank() + 1);
      int64_t begin = bucket.begin;
      for (size_t p = 0; p < bucket.counts.size(); ++p) {
        expected.narrow(0, begin, bucket.counts[p]).add_(static_cast<double>(p + 1));
        begin += bucket.counts[p];
      }
    }
    shards.publish();
    hold(at::equal(set.flat_values(), expected), "published values");
  });
}

TEST_CASE("a layer's values are there from fetch to release, and those of others are not",
          "[train]") {
  on_ranks(2, [](const parallel::ProcessMesh& mesh) {
    ShardSamples set;
    const std::vector<at::Tensor> before = values_of(set);
    ParameterShards shards(set, {.states = Sharding::kParameters, .prefetch = Prefetch::kNone},
                           kBucketMb, mesh);
    shards.take_values();
    for (int64_t unit = 0; unit <= set.num_units(); ++unit) {
      shards.fetch(unit);
      for (size_t i = 0; i < before.size(); ++i) {
        const model::Parameter& parameter = set.entries()[i];
        hold(is_here(parameter) == (parameter.unit == unit), "what is fetched: " + parameter.name);
        if (parameter.unit == unit)
          hold(at::equal(parameter.tensor, before[i]), "a fetched value: " + parameter.name);
      }
      shards.release(unit);
    }
    shards.fetch_all();
    for (size_t i = 0; i < before.size(); ++i)
      hold(at::equal(set.entries()[i].tensor, before[i]), "all values");
    shards.release_all();
    for (const model::Parameter& parameter : set.entries())
      hold(!is_here(parameter), "what is left after release_all()");
  });
}

TEST_CASE("layers are fetched ahead in the order of the last pass of this kind", "[train]") {
  on_ranks(2, [](const parallel::ProcessMesh& mesh) {
    ShardSamples set;
    ParameterShards shards(set, {.states = Sharding::kParameters, .prefetch = Prefetch::kPre},
                           kBucketMb, mesh);
    shards.take_values();
    const auto unit_is_here = [&](int64_t unit) {
      for (const model::Parameter& parameter : set.entries())
        if (parameter.unit == unit) return is_here(parameter);
      return false;
    };
    for (const bool known : {false, true}) {
      shards.start_pass(1);
      shards.fetch(2);
      hold(unit_is_here(1) == known, "the layer that comes next");
      shards.release(2);
      shards.fetch(1);
      shards.release(1);
    }
  });
}

TEST_CASE("new own parts replace the values, also where these are taken", "[train]") {
  for (const Sharding states : {Sharding::kOptimizer, Sharding::kParameters}) {
    on_ranks(2, [&](const parallel::ProcessMesh& mesh) {
      ShardSamples set;
      ParameterShards shards(set, {.states = states}, kBucketMb, mesh);
      const std::vector<at::Tensor> before = values_of(set);
      shards.take_values();
      shards.set_local_values(shards.local_values() * 2.0);
      shards.fetch_all();
      for (size_t i = 0; i < before.size(); ++i)
        hold(at::equal(set.entries()[i].tensor, before[i] * 2.0), set.entries()[i].name);
      shards.release_all();
    });
  }
}

TEST_CASE("parts may be kept twice; groups that do not fit are refused", "[train]") {
  on_ranks(4, [](const parallel::ProcessMesh& mesh) {
    ShardSamples set;
    const ParameterShards shards(set, {.states = Sharding::kGradients, .ranks = 2}, kBucketMb,
                                 mesh);
    hold(shards.shard_group().size() == 2 && shards.copy_group().size() == 2, "sizes of groups");
    hold(shards.shard_group().rank() == mesh.data().rank() % 2, "neighbours share");
  });
  ShardSamples set;
  const parallel::ProcessMesh alone;
  REQUIRE_THROWS_WITH(
      ParameterShards(set, {.states = Sharding::kOptimizer, .ranks = 3}, 1.0, alone),
      ContainsSubstring("parallel.sharding.ranks"));
}
