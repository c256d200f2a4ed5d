// SPDX-License-Identifier: Apache-2.0
#include "parallel/together.h"

#include <atomic>

#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"

using namespace aifs;
using parallel::Communicator;

namespace {

struct Outcome {
  int failed = 0, code = 0;  // ranks that saw the failure, and the code that they saw
  std::string reported;      // by the ranks that reported one
};

// Takes a step on three ranks; those of `failing` throw "rank <r>", with the code 10 + r.
Outcome step(const std::vector<int>& failing) {
  std::atomic<int> failed = 0, code = 0;
  std::string reported;  // by one rank
  parallel::run_as_threads(3, [&](Communicator& group) {
    const int rank = group.rank();
    const auto action = [&] {
      for (const int bad : failing)
        if (bad == rank) throw Error(concat("rank ", rank));
    };
    const parallel::FailureHandling handling{
        [&](const std::exception&) { return 10 + rank; },
        [&](const std::exception& error) { reported += error.what(); }};
    try {
      parallel::together(group, action, handling);
    } catch (const parallel::FailedTogether& error) {
      ++failed;
      code = error.code();
    }
  });
  return {failed, code, reported};
}

}  // namespace

TEST_CASE("a step that fails nowhere goes on everywhere", "[parallel]") {
  REQUIRE(step({}).failed == 0);
}

TEST_CASE("a step that fails on one rank fails on all, and that one reports it", "[parallel]") {
  for (const int bad : {0, 1, 2}) {
    const Outcome outcome = step({bad});
    REQUIRE(outcome.failed == 3);
    REQUIRE(outcome.code == 10 + bad);
    REQUIRE(outcome.reported == concat("rank ", bad));
  }
}

TEST_CASE("of several failures the first rank's is reported, and the largest code counts",
          "[parallel]") {
  const Outcome outcome = step({1, 2});
  REQUIRE(outcome.failed == 3);
  REQUIRE(outcome.code == 12);
  REQUIRE(outcome.reported == "rank 1");
}
