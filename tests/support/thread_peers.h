// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of the test, for what goes by core/peers.h.
#pragma once

#include <barrier>
#include <cstring>
#include <exception>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "core/peers.h"
#include "core/shares.h"

namespace aifs::test {

// What the threads share: where each has its items, and how many for whom.
struct PeerTable {
  explicit PeerTable(int64_t size)
      : items(static_cast<size_t>(size)), counts(static_cast<size_t>(size)), meeting(size) {}

  std::vector<const char*> items;
  std::vector<std::vector<int64_t>> counts;
  std::barrier<> meeting;
};

class ThreadPeers : public Peers {
 public:
  ThreadPeers(PeerTable& table, int64_t rank) : table_(table), rank_(rank) {}

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return static_cast<int64_t>(table_.items.size()); }
  std::vector<int64_t> exchange_counts(const std::vector<int64_t>& counts) override {
    std::vector<int64_t> received;
    put(nullptr, counts);
    for (const auto& theirs : table_.counts)
      received.push_back(theirs[me()]);
    table_.meeting.arrive_and_wait();
    return received;
  }
  void exchange_items(const void* items, const std::vector<int64_t>& counts, void* received,
                      const std::vector<int64_t>& received_counts, int64_t width) override {
    put(items, counts);
    auto* to = static_cast<char*>(received);
    for (size_t p = 0; p < table_.items.size(); ++p) {
      const int64_t first = starts_of(table_.counts[p])[me()];
      AIFS_CHECK(table_.counts[p][me()] == received_counts[p], "other counts");
      copy(to, table_.items[p] + first * width, received_counts[p] * width);
    }
    table_.meeting.arrive_and_wait();
  }
  void gather_items(const void* items, void* all, const std::vector<int64_t>& counts,
                    int64_t width) override {
    put(items, counts);
    auto* to = static_cast<char*>(all);
    for (size_t p = 0; p < table_.items.size(); ++p)
      copy(to, table_.items[p], counts[p] * width);
    table_.meeting.arrive_and_wait();
  }

 private:
  size_t me() const { return static_cast<size_t>(rank_); }
  void put(const void* items, const std::vector<int64_t>& counts) {
    table_.items[me()] = static_cast<const char*>(items);
    table_.counts[me()] = counts;
    table_.meeting.arrive_and_wait();
  }
  static void copy(char*& to, const char* from, int64_t bytes) {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
    to += bytes;
  }

  PeerTable& table_;
  int64_t rank_;
};

// Calls body(peers) on so many threads. What one throws is rethrown; the others must not wait for
// it.
inline void run_peers(int64_t size, const std::function<void(Peers&)>& body) {
  PeerTable table(size);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadPeers peers(table, rank);
      try {
        body(peers);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
        table.meeting.arrive_and_drop();
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace aifs::test
