// SPDX-License-Identifier: Apache-2.0
// Runs under mpirun too: every rank runs the same cases in the same order.
#include "parallel/runtime.h"

#include <ATen/ATen.h>

#include "tests/parallel/communicator_laws.h"
#include "tests/support/catch.h"

using namespace aifs;

namespace {

parallel::Runtime& runtime() {
  static parallel::Runtime the_only_one(60.0);
  return the_only_one;
}

}  // namespace

TEST_CASE("the launcher's ranks are found", "[parallel]") {
  REQUIRE(runtime().size() == parallel::launched_ranks());
  REQUIRE(runtime().rank() == parallel::launched_rank());
  REQUIRE(runtime().name().find("rank ") == 0);
}

TEST_CASE("MPI ranks obey the laws of communicators", "[parallel]") {
  for (const auto& [name, law] : test::communicator_laws()) {
    INFO(name << ", rank " << runtime().rank() << " of " << runtime().size());
    REQUIRE_NOTHROW(law(runtime().world()));
  }
}
