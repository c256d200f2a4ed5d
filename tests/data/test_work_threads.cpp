// SPDX-License-Identifier: Apache-2.0
#include "data/tools/work_threads.h"

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

TEST_CASE("every item is done once, by any number of threads", "[data]") {
  for (const int64_t threads : {1, 2, 7}) {
    std::vector<std::atomic<int>> done(100);
    run_on_threads(100, threads, [&](int64_t item) { ++done[static_cast<size_t>(item)]; });
    for (const auto& count : done)
      CHECK(count == 1);
  }
  run_on_threads(0, 3, [](int64_t) { FAIL("there is nothing to do"); });
}

TEST_CASE("the error of the lowest item is thrown, and nothing new is begun", "[data]") {
  std::atomic<int> begun = 0;
  try {
    run_on_threads(1000, 2, [&](int64_t item) {
      ++begun;
      throw DataError(concat("item ", item));
    });
    FAIL("no error");
  } catch (const DataError& error) {
    CHECK(std::string(error.what()) == "item 0");
  }
  CHECK(begun <= 2);
}

TEST_CASE("threads are as many as their memory allows, at least one", "[data]") {
  CHECK(threads_for(8, 1 << 20, 4 << 20) == 4);
  CHECK(threads_for(8, 1 << 20, 1 << 30) == 8);
  CHECK(threads_for(8, int64_t{1} << 40, 1 << 20) == 1);
  CHECK(threads_for(0, 1) >= 1);
}
