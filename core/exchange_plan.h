// SPDX-License-Identifier: Apache-2.0
// Who sends which rows to whom: plain data, made from a graph, executed by parallel/halo_exchange.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace aifs {

// One rank's part of an exchange among R ranks. Rows arrive grouped by sender, in rank order.
struct ExchangePlan {
  std::vector<int64_t> send_rows;    // own rows to send, grouped by receiver
  std::vector<int64_t> send_counts;  // (R) rows for each receiver; own entry 0
  std::vector<int64_t> recv_counts;  // (R) rows from each sender; own entry 0

  int64_t num_received() const {
    return std::accumulate(recv_counts.begin(), recv_counts.end(), int64_t{0});
  }
};

}  // namespace aifs
