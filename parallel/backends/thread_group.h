// SPDX-License-Identifier: Apache-2.0
// What ranks that are threads of one process share: a barrier that can be broken, and a place for
// one tensor each.
#pragma once

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <mutex>
#include <vector>

#include "core/check.h"

namespace aifs::parallel {

// Thrown in ranks whose group has been aborted by another.
class RankAborted : public Error {
 public:
  RankAborted() : Error("another rank failed") {}
};

class ThreadGroup {
 public:
  explicit ThreadGroup(int size);

  int size() const { return size_; }
  // Waits for all. Throws RankAborted once abort() was called.
  void meet();
  void abort();
  // Changes what the members share.
  template <class Change>
  void locked(Change&& change) {
    const std::lock_guard lock(mutex_);
    if (aborted_) throw RankAborted();
    change();
    changed_.notify_all();
  }
  // Waits until `ready` is true; it is called under the lock, after every change.
  template <class Ready>
  void wait_until(Ready&& ready) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return aborted_ || ready(); });
    if (aborted_) throw RankAborted();
  }

  // One slot a member; written by its owner between meetings.
  std::vector<at::Tensor> tensors;
  std::vector<std::vector<int64_t>> counts, more_counts;

 private:
  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  int64_t round_ = 0;
  bool aborted_ = false;
};

}  // namespace aifs::parallel
