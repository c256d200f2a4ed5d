// SPDX-License-Identifier: Apache-2.0
#include "core/run_on_threads.h"

#include <atomic>
#include <string>
#include <vector>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;

TEST_CASE("every item is done once, by any number of threads", "[run_on_threads]") {
  for (const int64_t threads : {1, 2, 7}) {
    std::vector<std::atomic<int>> done(100);
    run_on_threads(100, threads, [&](int64_t item) { ++done[static_cast<size_t>(item)]; });
    for (const auto& count : done)
      CHECK(count == 1);
  }
  run_on_threads(0, 3, [](int64_t) { FAIL("there is nothing to do"); });
}

TEST_CASE("the error of the lowest item is thrown, and nothing new is begun", "[run_on_threads]") {
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
