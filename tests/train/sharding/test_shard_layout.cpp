// SPDX-License-Identifier: Apache-2.0
#include "train/sharding/shard_layout.h"

#include "tests/support/catch.h"
#include "tests/train/sharding/shard_samples.h"

using namespace aifs;
using namespace aifs::train;
using test::ShardSamples;

namespace {

constexpr int64_t kBlock = model::ParameterSet::kAlignment;

}  // namespace

TEST_CASE("buckets follow one another through the flat buffers, and so do the parts of ranks",
          "[train]") {
  const ShardSamples set;
  for (const bool by_unit : {false, true}) {
    for (const int64_t elements : {int64_t{1}, int64_t{200}, int64_t{1'000'000}}) {
      for (const int64_t shards : {1, 2, 3, 7}) {
        INFO(by_unit << ", buckets of " << elements << ", " << shards << " parts");
        int64_t local = 0;
        std::vector<int64_t> ends;  // of the parts before, in each bucket
        for (int64_t shard = 0; shard < shards; ++shard) {
          const ShardLayout layout(set, elements, by_unit, shards, shard);
          ends.resize(layout.buckets().size(), -1);
          int64_t end = 0, own = 0;
          for (size_t b = 0; b < layout.buckets().size(); ++b) {
            const ShardBucket& bucket = layout.buckets()[b];
            REQUIRE(bucket.begin == end);
            end = bucket.end;
            REQUIRE(bucket.own_begin == (shard == 0 ? bucket.begin : ends[b]));
            REQUIRE(bucket.own_size % kBlock == 0);
            REQUIRE(bucket.own_size == bucket.counts[static_cast<size_t>(shard)]);
            ends[b] = bucket.own_begin + bucket.own_size;
            if (shard + 1 == shards) REQUIRE(ends[b] == bucket.end);
            REQUIRE(bucket.local_begin == own);
            own += bucket.own_size;
          }
          REQUIRE(end == set.flat_size());
          REQUIRE(layout.local_size() == own);
          local += own;
        }
        REQUIRE(local == set.flat_size());
      }
    }
  }
}

TEST_CASE("a parameter lies whole in its bucket", "[train]") {
  const ShardSamples set;
  for (const bool by_unit : {false, true}) {
    const ShardLayout layout(set, 200, by_unit, 2, 0);
    for (size_t i = 0; i < set.entries().size(); ++i) {
      const model::Parameter& parameter = set.entries()[i];
      const ShardBucket& bucket = layout.buckets()[layout.bucket_of(i)];
      INFO(parameter.name);
      REQUIRE(parameter.offset >= bucket.begin);
      REQUIRE(parameter.offset + parameter.tensor.numel() <= bucket.end);
      REQUIRE(std::count(bucket.parameters.begin(), bucket.parameters.end(), i) == 1);
      if (by_unit) REQUIRE(bucket.unit == parameter.unit);
    }
  }
}

TEST_CASE("only the bucket at the front may be smaller than wanted, and none could do with less",
          "[train]") {
  const ShardSamples set;
  constexpr int64_t kElements = 200;
  const ShardLayout layout(set, kElements, /*by_unit=*/false, 1, 0);
  REQUIRE(layout.buckets().size() > 2);
  for (size_t b = 1; b < layout.buckets().size(); ++b) {
    const ShardBucket& bucket = layout.buckets()[b];
    REQUIRE(bucket.size() >= kElements);
    // Filled from the back: without its first parameter it would be too small.
    if (bucket.parameters.size() > 1)
      REQUIRE(bucket.end - set.entries()[bucket.parameters[1]].offset < kElements);
  }
}

TEST_CASE("parameters that are not flat have no layout", "[train]") {
  model::ParameterSet set(at::kDouble, 7);
  test::add_random(set, "weight", {3});
  REQUIRE_THROWS_AS(ShardLayout(set, 1, false, 1, 0), Error);
}
