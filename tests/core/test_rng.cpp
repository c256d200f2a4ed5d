// SPDX-License-Identifier: Apache-2.0
// The vectors are numpy's, from the specification of Anemoi's sampling (appendix A.1).
#include "core/rng.h"

#include <algorithm>

#include "tests/support/catch.h"

using namespace aifs;

namespace {

struct Derived {
  uint64_t base;
  SeedContext context;
  std::vector<uint32_t> keys;
  uint32_t seed;
};

std::vector<int64_t> first_six(uint64_t seed, int64_t n) {
  Pcg64 generator(seed);
  generator.next_double();
  std::vector<int64_t> order = generator.permutation(n);
  order.resize(6);
  return order;
}

}  // namespace

TEST_CASE("seeds are derived as numpy's SeedSequence does", "[rng]") {
  const std::vector<Derived> cases{{19525198, SeedContext::kTrainer, {}, 2478688360u},
                                   {19525198, SeedContext::kModel, {1}, 2516803993u},
                                   {19525198, SeedContext::kDataLoader, {5}, 3643427004u},
                                   {42, SeedContext::kTrainer, {}, 2684470948u},
                                   {42, SeedContext::kModel, {0}, 1174127800u},
                                   {42, SeedContext::kDataLoader, {0}, 1587909317u},
                                   {987654321012ull, SeedContext::kDataLoader, {0}, 1140895525u}};
  for (const Derived& c : cases)
    REQUIRE(derive_seed(c.base, c.context, c.keys) == c.seed);
}

TEST_CASE("doubles and permutations are numpy's", "[rng]") {
  REQUIRE(Pcg64(3643427004u).next_double() == 0.537042183918721);
  REQUIRE(Pcg64(1587909317u).next_double() == 0.8135218551271903);
  using Order = std::vector<int64_t>;
  REQUIRE(first_six(3643427004u, 10) == Order{2, 8, 9, 6, 4, 7});
  REQUIRE(first_six(3643427004u, 1000) == Order{222, 963, 17, 57, 847, 697});
  REQUIRE(first_six(3643427004u, 10001) == Order{5380, 5822, 9674, 5663, 2045, 397});
  REQUIRE(first_six(0, 10001) == Order{4479, 2069, 7287, 1683, 6240, 4049});
}

TEST_CASE("a permutation holds every index once", "[rng]") {
  for (const int64_t n : {0, 1, 2, 37, 10000, 10001}) {
    std::vector<int64_t> order = Pcg64(7).permutation(n);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < n; ++i)
      REQUIRE(order[static_cast<size_t>(i)] == i);
  }
}

TEST_CASE("normal numbers of a counter stream have mean 0 and variance 1", "[rng]") {
  const CounterRng rng(11);
  double sum = 0, squares = 0;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) {
    const double x = rng.normal(static_cast<uint64_t>(i));
    sum += x;
    squares += x * x;
  }
  REQUIRE(std::abs(sum / kCount) < 0.03);
  REQUIRE(std::abs(squares / kCount - 1) < 0.05);
}
