// SPDX-License-Identifier: Apache-2.0
#include "graph/base/parallel_for.h"

#include <algorithm>

#include "core/cores.h"
#include "core/run_on_threads.h"

namespace aifs::graph {

int64_t effective_threads(int64_t num_threads) {
  if (num_threads > 0) return num_threads;
  static const int64_t all = usable_cores();
  return all;
}

void parallel_for(int64_t num_items, int64_t num_threads,
                  const std::function<void(int64_t, int64_t, int64_t)>& body) {
  run_on_threads(num_blocks(num_items), effective_threads(num_threads), [&](int64_t block) {
    body(block, block * kBlockItems, std::min(num_items, (block + 1) * kBlockItems));
  });
}

}  // namespace aifs::graph
