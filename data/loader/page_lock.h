// SPDX-License-Identifier: Apache-2.0
// Makes memory that others have allocated page-locked, so that a GPU copies from it while the host
// does something else.
#pragma once

#include <cstddef>

namespace aifs::data {

class PageLock {
 public:
  // Without CUDA, or where the system refuses, copies wait instead: no error.
  PageLock(void* memory, size_t bytes);
  ~PageLock();
  PageLock(const PageLock&) = delete;
  PageLock& operator=(const PageLock&) = delete;

 private:
  [[maybe_unused]] void* memory_ = nullptr;  // null: not locked
};

}  // namespace aifs::data
