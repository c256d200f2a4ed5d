// SPDX-License-Identifier: Apache-2.0
#include "graph/base/parallel_for.h"

#include <atomic>
#include <vector>

#include "core/check.h"
#include "core/cores.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

TEST_CASE("every item is visited once, whatever the number of threads", "[parallel_for]") {
  for (const int64_t items : {int64_t{0}, int64_t{1}, kBlockItems, 5 * kBlockItems + 3}) {
    for (const int64_t threads : {0, 1, 3}) {
      std::vector<int> visits(static_cast<size_t>(items), 0);
      parallel_for(items, threads, [&](int64_t block, int64_t begin, int64_t end) {
        REQUIRE(begin == block * kBlockItems);
        for (int64_t i = begin; i < end; ++i)
          ++visits[static_cast<size_t>(i)];
      });
      REQUIRE(visits == std::vector<int>(static_cast<size_t>(items), 1));
    }
  }
}

TEST_CASE("an exception of a body reaches the caller", "[parallel_for]") {
  const auto run = [](int64_t threads) {
    parallel_for(10 * kBlockItems, threads, [](int64_t block, int64_t, int64_t) {
      if (block == 0) throw Error("block 0");
    });
  };
  REQUIRE_THROWS_WITH(run(1), "block 0");
  REQUIRE_THROWS_WITH(run(2), "block 0");
}

TEST_CASE("no number of threads means all cores that the process may use", "[parallel_for]") {
  REQUIRE(effective_threads(0) == usable_cores());
  REQUIRE(effective_threads(7) == 7);
}
