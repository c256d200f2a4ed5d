// SPDX-License-Identifier: Apache-2.0
#include "data/host_share.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <thread>

#include "tests/support/catch.h"

using namespace aifs::data;

namespace {

constexpr int64_t kSlots = 3, kBytes = 10000;
constexpr HostShare::Place kFirst{0, 2, {}}, kSecond{1, 2, {}};

void wait_until(const std::function<bool()>& holds) {
  while (!holds())
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

// Does each of two ranks' work on a batch: writes its half, waits for the other, checks the whole.
bool pass_batch(const HostShare& share, int64_t batch) {
  wait_until([&] { return share.is_free(batch); });
  const int64_t half = kBytes / 2, rank = share.place().rank;
  std::memset(share.slot(batch) + rank * half, static_cast<int>(batch % 100 + rank), half);
  share.finish(batch);
  wait_until([&] { return share.is_finished(batch); });
  bool right = true;
  for (int64_t i = 0; i < kBytes; ++i)
    right = right && share.slot(batch)[i] == static_cast<std::byte>(batch % 100 + i / half);
  share.release(batch);
  return right;
}

}  // namespace

TEST_CASE("two processes fill batches together, each slot again and again", "[host_share]") {
  constexpr int64_t kBatches = 500;
  const auto first = HostShare::create(kFirst, kSlots, kBytes);
  REQUIRE(first);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto second = HostShare::open(first->name(), kSecond, kSlots, kBytes);
    bool right = second != nullptr;
    for (int64_t batch = 0; right && batch < kBatches; ++batch)
      right = pass_batch(*second, batch);
    ::_exit(right ? 0 : 1);
  }
  bool right = true;
  for (int64_t batch = 0; batch < kBatches; ++batch)
    right = pass_batch(*first, batch) && right;
  first->unlink_name();
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  REQUIRE(right);
  REQUIRE(HostShare::open(first->name(), kSecond, kSlots, kBytes) == nullptr);
}

TEST_CASE("a failure of one rank reaches all, at its batch", "[host_share]") {
  const auto first = HostShare::create(kFirst, kSlots, kBytes);
  REQUIRE(first);
  const auto second = HostShare::open(first->name(), kSecond, kSlots, kBytes);
  REQUIRE(second);
  first->unlink_name();
  second->fail(4, "'a.zarr/data/7' is damaged");
  first->fail(4, "a later one");
  REQUIRE(first->failure(4) == "'a.zarr/data/7' is damaged");
  REQUIRE(first->failure(1).empty());
  REQUIRE(first->failure(7).empty());  // of the same slot
  second->fail(7, std::string(100000, 'x'));
  REQUIRE(first->failure(7).size() > 1000);
  REQUIRE(first->take_numbers(5) == 0);
  REQUIRE(first->take_numbers(2) == 5);
}

TEST_CASE("a rank whose process has ended is known to the others", "[host_share]") {
  const auto first = HostShare::create(kFirst, kSlots, kBytes);
  REQUIRE(first);
  REQUIRE(first->lost_rank() == 1);  // it never came
  int to_child[2], to_parent[2];
  REQUIRE(::pipe(to_child) == 0);
  REQUIRE(::pipe(to_parent) == 0);
  const pid_t child = ::fork();
  char byte = 0;
  if (child == 0) {
    const auto second = HostShare::open(first->name(), kSecond, kSlots, kBytes);
    if (::write(to_parent[1], &byte, 1) == 1 && ::read(to_child[0], &byte, 1) == 1)
      ::kill(::getpid(), SIGKILL);
    ::_exit(1);
  }
  REQUIRE(::read(to_parent[0], &byte, 1) == 1);
  REQUIRE_FALSE(first->lost_rank().has_value());
  REQUIRE(::write(to_child[1], &byte, 1) == 1);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(first->lost_rank() == 1);
  first->unlink_name();
}

TEST_CASE("memory that is not there is no share", "[host_share]") {
  REQUIRE(HostShare::create({}, 1000, int64_t{1} << 40) == nullptr);
  REQUIRE(HostShare::open("/aifs-nothing", {}, kSlots, kBytes) == nullptr);
}
