// SPDX-License-Identifier: Apache-2.0
// Ranks that give each other plain arrays, for modules without communicators
// (parallel/communicator_peers.h makes them of one).
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/check.h"

namespace aifs {

// Every operation is collective: all peers call it, in the same order. Items are of `width` bytes.
class Peers {
 public:
  virtual ~Peers() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;
  // Gives counts[p] to rank p; returns what each rank gave to this one.
  virtual std::vector<int64_t> exchange_counts(const std::vector<int64_t>& counts) = 0;
  // Gives counts[p] items, grouped by receiver, to rank p. What comes is written to `received`,
  // grouped by sender, as many of each as exchange_counts() has told.
  virtual void exchange_items(const void* items, const std::vector<int64_t>& counts, void* received,
                              const std::vector<int64_t>& received_counts, int64_t width) = 0;
  // Writes the items of all ranks, counts[p] of rank p, to `all` in rank order.
  virtual void gather_items(const void* items, void* all, const std::vector<int64_t>& counts,
                            int64_t width) = 0;
};

// Rows of `columns` plain values, grouped by rank; counts are those of rows.
template <class T>
struct Grouped {
  std::vector<T> values;
  std::vector<int64_t> counts;  // (R)
};

// Gives each rank its rows; returns those of all ranks for this one, in rank order.
template <class T>
Grouped<T> exchange(Peers& peers, const std::vector<T>& values, const std::vector<int64_t>& counts,
                    int64_t columns = 1) {
  const auto total = [&](const std::vector<int64_t>& rows) {
    return std::accumulate(rows.begin(), rows.end(), int64_t{0}) * columns;
  };
  AIFS_CHECK(total(counts) == static_cast<int64_t>(values.size()), values.size(),
             " values to be given away, not ", total(counts));
  Grouped<T> received{{}, peers.exchange_counts(counts)};
  received.values.resize(static_cast<size_t>(total(received.counts)));
  peers.exchange_items(values.data(), counts, received.values.data(), received.counts,
                       columns * static_cast<int64_t>(sizeof(T)));
  return received;
}

// The values of all ranks, in rank order, on every rank.
template <class T>
Grouped<T> gather(Peers& peers, const std::vector<T>& values) {
  const auto own = static_cast<int64_t>(values.size());
  Grouped<T> all{
      {}, peers.exchange_counts(std::vector<int64_t>(static_cast<size_t>(peers.size()), own))};
  all.values.resize(
      static_cast<size_t>(std::accumulate(all.counts.begin(), all.counts.end(), int64_t{0})));
  peers.gather_items(values.data(), all.values.data(), all.counts, static_cast<int64_t>(sizeof(T)));
  return all;
}

// The sum over ranks of a number.
inline int64_t sum_over(Peers& peers, int64_t number) {
  const std::vector<int64_t> all =
      peers.exchange_counts(std::vector<int64_t>(static_cast<size_t>(peers.size()), number));
  return std::accumulate(all.begin(), all.end(), int64_t{0});
}

}  // namespace aifs
