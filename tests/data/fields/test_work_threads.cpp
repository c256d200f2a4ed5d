// SPDX-License-Identifier: Apache-2.0
#include "data/fields/work_threads.h"

#include "tests/support/catch.h"

using namespace aifs::data;

TEST_CASE("threads are as many as their memory allows, at least one", "[data]") {
  CHECK(threads_for(8, 1 << 20, 4 << 20) == 4);
  CHECK(threads_for(8, 1 << 20, 1 << 30) == 8);
  CHECK(threads_for(8, int64_t{1} << 40, 1 << 20) == 1);
  CHECK(threads_for(0, 1) >= 1);
}
