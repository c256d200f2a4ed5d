// SPDX-License-Identifier: Apache-2.0
#include "data/loader/sampler.h"

#include <algorithm>
#include <numeric>

#include "core/rng.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

using Indices = std::vector<int64_t>;
using Batches = std::vector<Indices>;

Indices counting(int64_t n) {
  Indices values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), int64_t{0});
  return values;
}

Indices joined(const Batches& batches) {
  Indices all;
  for (const Indices& batch : batches)
    all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

Indices sorted(Indices values) {
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

TEST_CASE("anchors have all their rows", "[sampler]") {
  const Indices missing{7, 5, 14};
  REQUIRE(usable_anchors(20, missing, Indices{0, 1, 2}) ==
          Indices{0, 1, 2, 8, 9, 10, 11, 15, 16, 17});
  REQUIRE(usable_anchors(20, missing, Indices{0, 5, 6, 7}) == Indices{3, 4, 6, 10, 11, 12});
  REQUIRE(usable_anchors(9, {}, Indices{-2, 0, 3}) == Indices{2, 3, 4, 5});
  REQUIRE(usable_anchors(3, {}, Indices{0, 3}).empty());
  REQUIRE(usable_anchors(0, {}, Indices{0}).empty());
}

TEST_CASE("anchors equal a search by brute force", "[sampler]") {
  const CounterRng rng(8);
  for (uint64_t trial = 0; trial < 50; ++trial) {
    const int64_t rows = 5 + static_cast<int64_t>(rng.bits(trial) % 30);
    Indices missing, expected;
    for (int64_t row = 0; row < rows; ++row) {
      if (rng.uniform(1000 * trial + static_cast<uint64_t>(row)) < 0.15) missing.push_back(row);
    }
    const Indices offsets{-1, 0, static_cast<int64_t>(trial % 4)};
    for (int64_t anchor = 0; anchor < rows; ++anchor) {
      bool usable = true;
      for (const int64_t offset : offsets) {
        const int64_t row = anchor + offset;
        usable = usable && row >= 0 && row < rows &&
                 std::find(missing.begin(), missing.end(), row) == missing.end();
      }
      if (usable) expected.push_back(anchor);
    }
    REQUIRE(usable_anchors(rows, missing, offsets) == expected);
  }
}

TEST_CASE("a balanced split gives the first parts the extra item", "[sampler]") {
  REQUIRE(balanced_offsets(10, 4) == Indices{0, 3, 6, 8, 10});
  REQUIRE(balanced_offsets(3, 5) == Indices{0, 1, 2, 3, 3, 3});
  REQUIRE(balanced_offsets(0, 2) == Indices{0, 0, 0});
}

TEST_CASE("the shuffled order is that of Anemoi's loader", "[sampler]") {
  // Reference: 25 times, window of three, base seed 42, three workers, batches of two.
  const Sampler sampler(counting(23), {.seed = 42, .batch_size = 2, .workers = 3});
  REQUIRE(sampler.epoch(0) == Batches{{12, 13},
                                      {3, 9},
                                      {6, 21},
                                      {18, 8},
                                      {7, 10},
                                      {19, 22},
                                      {17, 14},
                                      {5, 0},
                                      {1, 11},
                                      {4, 16},
                                      {20, 15},
                                      {2}});
  REQUIRE(sampler.epoch(1) == Batches{{21, 15},
                                      {11, 6},
                                      {22, 1},
                                      {20, 16},
                                      {7, 5},
                                      {17, 9},
                                      {10, 13},
                                      {18, 19},
                                      {12, 0},
                                      {3, 14},
                                      {2, 4},
                                      {8}});
}

TEST_CASE("an epoch holds every anchor once", "[sampler]") {
  const Indices anchors{3, 5, 8, 13, 21, 34, 55};
  for (const bool shuffle : {false, true}) {
    for (const int64_t workers : {1, 2, 3, 9}) {
      for (const int64_t batch_size : {1, 2, 3, 100}) {
        const Sampler sampler(anchors,
                              {.shuffle = shuffle, .batch_size = batch_size, .workers = workers});
        const Batches batches = sampler.epoch(2);
        REQUIRE(sorted(joined(batches)) == anchors);
        REQUIRE(static_cast<int64_t>(batches.size()) == sampler.batches_per_epoch());
        // Every worker rounds its own share up.
        int64_t expected = 0;
        const Indices parts = balanced_offsets(7, workers);
        for (size_t w = 0; w + 1 < parts.size(); ++w)
          expected += (parts[w + 1] - parts[w] + batch_size - 1) / batch_size;
        REQUIRE(sampler.batches_per_epoch() == expected);
      }
    }
  }
}

TEST_CASE("groups share the epoch out, what is left over is dropped", "[sampler]") {
  const auto epoch_of = [](int64_t group) {
    return joined(
        Sampler(counting(17), {.batch_size = 2, .num_groups = 3, .group = group}).epoch(4));
  };
  Indices all;
  for (const int64_t group : {0, 1, 2}) {
    const Indices part = epoch_of(group);
    REQUIRE(part.size() == 5);
    all.insert(all.end(), part.begin(), part.end());
  }
  const Indices alone = joined(Sampler(counting(17), {}).epoch(4));
  REQUIRE(all == Indices(alone.begin(), alone.begin() + 15));
}

TEST_CASE("an epoch does not depend on which were asked for before", "[sampler]") {
  for (const bool reseed : {false, true}) {
    const SamplerOptions options{.batch_size = 3, .reseed_every_epoch = reseed};
    const Sampler one(counting(40), options), other(counting(40), options);
    const Batches third = one.epoch(3);
    for (const int64_t epoch : {0, 1, 2})
      REQUIRE(other.epoch(epoch) != third);
    REQUIRE(other.epoch(3) == third);
  }
}

TEST_CASE("epochs continue one generator or start one each", "[sampler]") {
  const SamplerOptions continued{.seed = 5}, restarted{.seed = 5, .reseed_every_epoch = true};
  REQUIRE(Sampler(counting(30), continued).epoch(0) == Sampler(counting(30), restarted).epoch(0));
  REQUIRE(Sampler(counting(30), continued).epoch(1) != Sampler(counting(30), restarted).epoch(1));
  Pcg64 generator(derive_seed(5, SeedContext::kDataLoader, {{1}}));
  generator.next_double();
  REQUIRE(joined(Sampler(counting(30), restarted).epoch(1)) == generator.permutation(30));
}

TEST_CASE("without shuffling the anchors keep their order, worker by worker", "[sampler]") {
  const Sampler sampler({10, 11, 12, 13, 14}, {.shuffle = false, .batch_size = 2, .workers = 2});
  REQUIRE(sampler.epoch(0) == Batches{{10, 11}, {13, 14}, {12}});
  REQUIRE(sampler.epoch(7) == sampler.epoch(0));
}

TEST_CASE("no anchors make no batches", "[sampler]") {
  const Sampler sampler({}, {.batch_size = 2});
  REQUIRE(sampler.num_samples() == 0);
  REQUIRE(sampler.batches_per_epoch() == 0);
}

TEST_CASE("datasets share anchors, ordered by their low byte", "[sampler]") {
  const std::vector<std::vector<int64_t>> one{{3, 1000}};
  REQUIRE(common_anchors(one) == std::vector<int64_t>{3, 1000});
  const std::vector<std::vector<int64_t>> two{{0, 1, 2, 256, 257, 600}, {0, 1, 256, 257, 300}};
  REQUIRE(common_anchors(two) == std::vector<int64_t>{0, 256, 1, 257});
}
