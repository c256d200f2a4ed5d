// SPDX-License-Identifier: Apache-2.0
// Runs under mpirun and tests/support/start_ranks, too: every rank runs the same cases in the same
// order.
#include "parallel/launch/runtime.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"
#include "core/cores.h"
#include "parallel/backends/comm_virtual.h"
#include "tests/parallel/communicator_laws.h"
#include "tests/support/catch.h"
#include "tests/support/tensors.h"

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

// All ranks of this test are on one host and bound to the same cores.
TEST_CASE("ranks of a host are counted and share its cores", "[parallel]") {
  REQUIRE(runtime().local_size() == runtime().size());
  REQUIRE(runtime().local_rank() == runtime().rank());
  REQUIRE(runtime().num_cores() == std::max<int64_t>(1, usable_cores() / runtime().size()));
}

TEST_CASE("virtual ranks of several processes obey the laws of communicators", "[parallel]") {
  for (const int share : {1, 2, 3}) {
    for (const auto& [name, law] : test::communicator_laws()) {
      if (name.starts_with("point to point")) continue;  // within a process only
      INFO(name << ", " << share << " ranks on each of " << runtime().size());
      REQUIRE_NOTHROW(
          parallel::run_as_virtual_ranks(runtime().world(), share * runtime().size(), law));
    }
  }
}

TEST_CASE("virtual ranks add in rank order: the same bits for any number of processes",
          "[parallel]") {
  constexpr int kRanks = 12;  // 1, 2, 3 and 4 divide it
  at::Tensor expected = test::random_tensor({1000}, 0).to(at::kFloat);
  for (int p = 1; p < kRanks; ++p)
    expected += test::random_tensor({1000}, static_cast<uint64_t>(p)).to(at::kFloat);
  parallel::run_as_virtual_ranks(runtime().world(), kRanks, [&](parallel::Communicator& group) {
    const at::Tensor mine =
        test::random_tensor({1000}, static_cast<uint64_t>(group.rank())).to(at::kFloat);
    group.all_reduce(mine, parallel::Reduction::kSum);
    if (!at::equal(mine, expected)) throw Error("other bits");
  });
}

TEST_CASE("the ranks of the world obey the laws of communicators", "[parallel]") {
  for (const auto& [name, law] : test::communicator_laws()) {
    INFO(name << ", rank " << runtime().rank() << " of " << runtime().size());
    REQUIRE_NOTHROW(law(runtime().world()));
  }
}
