// SPDX-License-Identifier: Apache-2.0
// Arrays of hundreds of megabytes in large pages, where the system has them: it makes each page
// when it is first written to, which takes as long as filling it if pages are small.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace aifs::graph {

// `size` zeros.
template <class T>
std::vector<T> large_vector(size_t size) {
  constexpr uintptr_t kSmallPage = 4096;
  constexpr size_t kLeastBytes = size_t{8} << 20;  // else not worth it
  std::vector<T> values;
  values.reserve(size);
  const size_t bytes = size * sizeof(T);
  if (bytes >= kLeastBytes) {
    const auto begin = reinterpret_cast<uintptr_t>(values.data());
    const uintptr_t first = (begin + kSmallPage - 1) / kSmallPage * kSmallPage;
    // Advice only: what the system says to it does not matter.
    ::madvise(reinterpret_cast<void*>(first), begin + bytes - first, MADV_HUGEPAGE);
  }
  values.resize(size);
  return values;
}

}  // namespace aifs::graph
