// SPDX-License-Identifier: Apache-2.0
#include "core/work_log.h"

#include <thread>
#include <vector>

#include "core/check.h"
#include "tests/support/catch.h"

using aifs::WorkLog;

TEST_CASE("calls of all threads are kept while somebody wants to know", "[work_log]") {
  WorkLog::add({.kind = "too early"});
  REQUIRE(!WorkLog::is_wanted());
  {
    const WorkLog log;
    REQUIRE(WorkLog::is_wanted());
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] {
        for (int k = 0; k < 100; ++k)
          WorkLog::add({.kind = "product", .bytes = 2.0, .operations = 3.0});
      });
    }
    for (std::thread& thread : threads)
      thread.join();
    REQUIRE(log.calls().size() == 400);
    REQUIRE(log.calls().back().operations == 3.0);
    REQUIRE_THROWS_AS(WorkLog(), aifs::Error);
    REQUIRE(WorkLog::is_wanted());  // the other one still is
  }
  WorkLog::add({.kind = "too late"});
  REQUIRE(WorkLog().calls().empty());
}
