// SPDX-License-Identifier: Apache-2.0
// Under mpirun, too: every rank runs the same cases in the same order.
#include "parallel/communicator_peers.h"

#include "core/check.h"
#include "parallel/backends/comm_virtual.h"
#include "parallel/launch/runtime.h"
#include "tests/support/catch.h"

using namespace aifs;

namespace {

// Calls body(peers) on the processes, and where there is one of them on threads.
void on_peers(const std::function<void(Peers&)>& body) {
  static parallel::Runtime runtime(60.0);
  const auto as_peers = [&](parallel::Communicator& group) {
    parallel::CommunicatorPeers peers(group);
    body(peers);
  };
  REQUIRE_NOTHROW(as_peers(runtime.world()));
  if (runtime.size() > 1) return;
  for (const int ranks : {2, 5})
    REQUIRE_NOTHROW(parallel::run_as_threads(ranks, as_peers));
}

// What rank `from` has for rank `to`: as many rows of two as their sum, none for its own sum's
// multiples of three.
int64_t rows_between(int64_t from, int64_t to) {
  return (from + to) % 3 == 0 ? 0 : from + to;
}
int32_t value_of(int64_t from, int64_t to, int64_t i) {
  return static_cast<int32_t>(1000 * from + 100 * to + i);
}

}  // namespace

TEST_CASE("every rank gets what the others have for it, grouped by sender", "[parallel]") {
  on_peers([](Peers& peers) {
    std::vector<int32_t> given;
    std::vector<int64_t> counts;
    for (int64_t to = 0; to < peers.size(); ++to) {
      counts.push_back(rows_between(peers.rank(), to));
      for (int64_t i = 0; i < 2 * counts.back(); ++i)
        given.push_back(value_of(peers.rank(), to, i));
    }
    const Grouped<int32_t> received = exchange(peers, given, counts, 2);
    size_t next = 0;
    for (int64_t from = 0; from < peers.size(); ++from) {
      const int64_t rows = rows_between(from, peers.rank());
      AIFS_CHECK(received.counts[static_cast<size_t>(from)] == rows, "other counts");
      for (int64_t i = 0; i < 2 * rows; ++i)
        AIFS_CHECK(received.values[next++] == value_of(from, peers.rank(), i), "other values");
    }
    AIFS_CHECK(next == received.values.size(), "values that nobody gave");
  });
}

TEST_CASE("values are gathered in rank order, and numbers added up", "[parallel]") {
  on_peers([](Peers& peers) {
    const std::vector<double> own(static_cast<size_t>(peers.rank()), 0.5 * double(peers.rank()));
    const Grouped<double> all = gather(peers, own);
    size_t next = 0;
    for (int64_t from = 0; from < peers.size(); ++from)
      for (int64_t i = 0; i < from; ++i)
        AIFS_CHECK(all.values[next++] == 0.5 * static_cast<double>(from), "other values");
    AIFS_CHECK(next == all.values.size(), "other numbers of values");
    AIFS_CHECK(sum_over(peers, peers.rank() + 1) == peers.size() * (peers.size() + 1) / 2,
               "another sum");
  });
}

TEST_CASE("values that do not fit the counts are refused before anything is sent", "[parallel]") {
  on_peers([](Peers& peers) {
    const std::vector<int64_t> counts(static_cast<size_t>(peers.size()), 2);
    bool refused = false;
    try {
      exchange(peers, std::vector<float>{1.0F}, counts);
    } catch (const Error&) {
      refused = true;
    }
    AIFS_CHECK(refused, "one value for many");
  });
}
