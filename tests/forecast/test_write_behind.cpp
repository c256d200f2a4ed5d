// SPDX-License-Identifier: Apache-2.0
#include "forecast/write_behind.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using forecast::WriteBehind;

TEST_CASE("pieces are done in order, and finish() waits for the last", "[write_behind]") {
  std::vector<int> done;
  WriteBehind writer(2);
  for (int i = 0; i < 20; ++i)
    writer.add([&done, i] { done.push_back(i); });
  writer.finish();
  REQUIRE(done.size() == 20);
  for (int i = 0; i < 20; ++i)
    REQUIRE(done[static_cast<size_t>(i)] == i);
}

TEST_CASE("no more pieces wait than were agreed", "[write_behind]") {
  std::atomic<int> begun = 0;
  std::atomic<bool> goes_on = false;
  WriteBehind writer(2);
  const auto piece = [&] {
    ++begun;
    while (!goes_on)
      std::this_thread::yield();
  };
  writer.add(piece);
  writer.add(piece);
  std::atomic<bool> added = false;
  std::thread third([&] {
    writer.add(piece);
    added = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const bool was_added = added;
  goes_on = true;
  third.join();
  writer.finish();
  REQUIRE_FALSE(was_added);
  REQUIRE(begun == 3);
  REQUIRE(writer.wait_s() > 0.0);
}

TEST_CASE("the error of a piece reaches the caller, and no piece after it is done",
          "[write_behind]") {
  std::atomic<int> after = 0;
  WriteBehind writer(8);
  writer.add([] { throw Error("the disk is full"); });
  const auto rest = [&] {
    for (int i = 0; i < 100; ++i)
      writer.add([&] { ++after; });
    writer.finish();
  };
  REQUIRE_THROWS_WITH(rest(), "the disk is full");
  REQUIRE_THROWS_WITH(writer.finish(), "the disk is full");
  REQUIRE(after == 0);
}
