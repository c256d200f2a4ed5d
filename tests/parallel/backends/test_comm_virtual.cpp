// SPDX-License-Identifier: Apache-2.0
#include "parallel/backends/comm_virtual.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/parallel/communicator_laws.h"
#include "tests/support/catch.h"

using namespace aifs;
using parallel::Communicator;

TEST_CASE("threads obey the laws of communicators", "[parallel]") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const auto& [name, law] : test::communicator_laws()) {
      INFO(name << ", " << ranks << " ranks");
      REQUIRE_NOTHROW(parallel::run_as_threads(ranks, law));
    }
  }
}

TEST_CASE("one rank alone obeys them too", "[parallel]") {
  const auto single = parallel::make_single_communicator();
  for (const auto& [name, law] : test::communicator_laws()) {
    INFO(name);
    REQUIRE_NOTHROW(law(*single));
  }
}

TEST_CASE("the error of one thread ends the others, and is the one that is reported",
          "[parallel]") {
  const auto body = [](Communicator& group) {
    if (group.rank() == 1) throw Error("rank 1 has had enough");
    group.barrier();
  };
  REQUIRE_THROWS_WITH(parallel::run_as_threads(3, body), ContainsSubstring("had enough"));
  const auto in_part = [](Communicator& group) {
    const auto part = group.split(0);
    if (group.rank() == 1) throw Error("rank 1 has had enough");
    part->barrier();
  };
  REQUIRE_THROWS_WITH(parallel::run_as_threads(3, in_part), ContainsSubstring("had enough"));
}

TEST_CASE("shares of rows differ by one at most", "[parallel]") {
  REQUIRE(balanced_counts(7, 3) == parallel::Counts{3, 2, 2});
  REQUIRE(balanced_counts(2, 4) == parallel::Counts{1, 1, 0, 0});
  REQUIRE(starts_of({3, 0, 2}) == parallel::Counts{0, 3, 3, 5});
}
