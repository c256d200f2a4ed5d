// SPDX-License-Identifier: Apache-2.0
#include "data/fields/work_threads.h"

#include <algorithm>

#include "core/cores.h"

namespace aifs::data {

int64_t threads_for(int64_t threads, int64_t bytes_each, int64_t most_bytes) {
  const int64_t wanted = threads > 0 ? threads : usable_cores();
  return std::clamp<int64_t>(most_bytes / std::max<int64_t>(bytes_each, 1), 1, wanted);
}

}  // namespace aifs::data
