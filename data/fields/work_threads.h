// SPDX-License-Identifier: Apache-2.0
// Says how many threads work on a store, and tells whoever wants to know how far they are.
#pragma once

#include <cstdint>
#include <string>

namespace aifs::data {

// Is told of progress; all functions may be called by several threads.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  // Begins work that has so many pieces, called `unit` ("dates").
  virtual void start(const std::string& what, int64_t total, const char* unit) = 0;
  // So many more are done, which held so many bytes.
  virtual void add(int64_t pieces, int64_t bytes) = 0;
  virtual void finish() = 0;
};

// Threads for work that takes so many bytes each: at most `threads` (0: as many as this process may
// use cores), at least one.
int64_t threads_for(int64_t threads, int64_t bytes_each, int64_t most_bytes = int64_t{8} << 30);

}  // namespace aifs::data
