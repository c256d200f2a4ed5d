// SPDX-License-Identifier: Apache-2.0
#include "parallel/backends/thread_group.h"

namespace aifs::parallel {

ThreadGroup::ThreadGroup(int size)
    : tensors(static_cast<size_t>(size)),
      counts(static_cast<size_t>(size)),
      more_counts(static_cast<size_t>(size)),
      size_(size) {}

void ThreadGroup::meet() {
  std::unique_lock lock(mutex_);
  if (aborted_) throw RankAborted();
  if (++arrived_ == size_) {
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
    return;
  }
  changed_.wait(lock, [&, entered = round_] { return round_ != entered || aborted_; });
  if (aborted_) throw RankAborted();
}

void ThreadGroup::abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
}

}  // namespace aifs::parallel
