// SPDX-License-Identifier: Apache-2.0
// Does many independent pieces of work on a few threads.
#pragma once

#include <cstdint>
#include <functional>

namespace aifs {

// Calls body(item) for 0 ... count - 1 on up to `threads` threads. Returns when all are done; after
// an exception no new item is begun, and that of the lowest item is rethrown.
void run_on_threads(int64_t count, int64_t threads, const std::function<void(int64_t item)>& body);

}  // namespace aifs
