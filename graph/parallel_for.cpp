// SPDX-License-Identifier: Apache-2.0
#include "graph/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/cores.h"

namespace aifs::graph {

int64_t effective_threads(int64_t num_threads) {
  if (num_threads > 0) return num_threads;
  static const int64_t all = usable_cores();
  return all;
}

void parallel_for(int64_t num_items, int64_t num_threads,
                  const std::function<void(int64_t, int64_t, int64_t)>& body) {
  const int64_t blocks = num_blocks(num_items);
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  int64_t error_block = blocks;
  const auto work = [&] {
    for (int64_t block = next++; block < blocks; block = next++) {
      try {
        body(block, block * kBlockItems, std::min(num_items, (block + 1) * kBlockItems));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (block < error_block) {
          error = std::current_exception();
          error_block = block;
        }
        next = blocks;
      }
    }
  };
  std::vector<std::thread> helpers;
  const int64_t wanted = std::min(effective_threads(num_threads), blocks) - 1;
  for (int64_t i = 0; i < wanted; ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers)
    helper.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace aifs::graph
