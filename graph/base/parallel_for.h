// SPDX-License-Identifier: Apache-2.0
// Loops over many independent items on a few threads. What a loop computes must not depend on the
// number of threads: items are dealt out in blocks of fixed size, and a body writes only to places
// that belong to its own items (or block).
#pragma once

#include <cstdint>
#include <functional>

namespace aifs::graph {

constexpr int64_t kBlockItems = 1024;

// Number of blocks that parallel_for() makes of `num_items`.
constexpr int64_t num_blocks(int64_t num_items) {
  return (num_items + kBlockItems - 1) / kBlockItems;
}

// Calls body(block, begin, end) for every block of [0, num_items), on up to `num_threads` threads
// (0: as many as this process may use cores). Returns when all are done; an exception of a body is
// rethrown, the one of the lowest block if there are several.
void parallel_for(int64_t num_items, int64_t num_threads,
                  const std::function<void(int64_t block, int64_t begin, int64_t end)>& body);

// `num_threads`, or usable_cores() of the start (core/cores.h) if it is 0.
int64_t effective_threads(int64_t num_threads);

}  // namespace aifs::graph
