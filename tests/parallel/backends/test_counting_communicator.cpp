// SPDX-License-Identifier: Apache-2.0
#include "parallel/backends/counting_communicator.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"
#include "parallel/backends/comm_virtual.h"
#include "tests/parallel/communicator_laws.h"
#include "tests/support/catch.h"

using namespace aifs;
using parallel::CommunicationCount;
using parallel::Communicator;
using parallel::CountingCommunicator;
using parallel::Operation;

TEST_CASE("a communicator that counts obeys the laws of communicators", "[parallel]") {
  for (const auto& [name, law] : test::communicator_laws()) {
    INFO(name);
    REQUIRE_NOTHROW(parallel::run_as_threads(2, [&](Communicator& inner) {
      CountingCommunicator group(inner, std::make_shared<CommunicationCount>());
      law(group);
    }));
  }
}

// Shares of 1, 2 and 3 rows of five fp64 numbers; bytes are those that go to or come from others.
TEST_CASE("calls and bytes are counted, also of groups that are split off", "[parallel]") {
  parallel::run_as_threads(3, [](Communicator& inner) {
    const auto count = std::make_shared<CommunicationCount>();
    CountingCommunicator group(inner, count);
    const int64_t own = group.rank() + 1, row = 5 * 8;
    const auto check = [&](Operation operation, int64_t calls, int64_t bytes) {
      const parallel::OperationCount counted = count->of(operation);
      if (counted.calls != calls || counted.bytes != bytes) {
        throw Error(
            concat(enum_name(operation), ": ", counted.calls, " calls, ", counted.bytes, " bytes"));
      }
    };
    group.all_reduce(at::zeros({7}, at::kFloat), parallel::Reduction::kSum);
    check(Operation::kAllReduce, 1, 7 * 4);
    const at::Tensor all = group.all_gather_rows(at::zeros({own, 5}, at::kDouble), {1, 2, 3});
    check(Operation::kAllGather, 1, (6 - own) * row);
    group.reduce_scatter_rows(all, {1, 2, 3});
    check(Operation::kReduceScatter, 1, (6 - own) * row);
    const auto part = group.split(0);
    part->broadcast(at::zeros({3}, at::kInt), 1);
    check(Operation::kBroadcast, 1, 3 * 4);
    part->barrier();
    check(Operation::kBarrier, 1, 0);
  });
}

TEST_CASE("work that is only recorded counts each time it is launched", "[parallel]") {
  CommunicationCount count;
  count.add(Operation::kSend, 10);
  const parallel::OperationCounts recorded = count.of_recorded([&] {
    count.add(Operation::kSend, 1);
    count.add(Operation::kSend, 2);
  });
  REQUIRE(count.of(Operation::kSend).bytes == 10);
  for (int launch = 0; launch < 3; ++launch)
    count.add(recorded);
  REQUIRE(count.of(Operation::kSend).calls == 7);
  REQUIRE(count.of(Operation::kSend).bytes == 19);
  const auto failing = [&] {
    count.add(Operation::kSend, 1000);
    throw Error("not recorded");
  };
  REQUIRE_THROWS_AS(count.of_recorded(failing), Error);
  REQUIRE(count.of(Operation::kSend).bytes == 19);
}

TEST_CASE("the table has a line for each operation that was called", "[parallel]") {
  CommunicationCount count;
  REQUIRE(count.table().empty());
  count.add(Operation::kSend, 12);
  count.add(Operation::kBarrier, 0);
  const std::string table = count.table();
  REQUIRE(std::count(table.begin(), table.end(), '\n') == 1);
  REQUIRE_THAT(table, ContainsSubstring("send") && ContainsSubstring("12 bytes") &&
                          ContainsSubstring("barrier"));
}
