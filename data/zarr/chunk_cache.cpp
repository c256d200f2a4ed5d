// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/chunk_cache.h"

namespace aifs::zarr {

ChunkCache::Entry ChunkCache::get(const std::string& key, const std::function<Entry()>& make) {
  std::promise<Entry> promise;
  {
    std::unique_lock lock(mutex_);
    if (const auto found = positions_.find(key); found != positions_.end()) {
      ++num_hits_;
      items_.splice(items_.begin(), items_, found->second);
      return found->second->entry;
    }
    if (const auto found = in_the_making_.find(key); found != in_the_making_.end()) {
      ++num_hits_;
      const std::shared_future<Entry> future = found->second;
      lock.unlock();
      return future.get();
    }
    ++num_misses_;
    in_the_making_.emplace(key, promise.get_future());
  }
  Entry entry;
  try {
    entry = make();
  } catch (...) {
    promise.set_exception(std::current_exception());
    finish(key, nullptr);
    throw;
  }
  promise.set_value(entry);
  finish(key, entry);
  return entry;
}

void ChunkCache::finish(const std::string& key, const Entry& entry) {
  const std::lock_guard lock(mutex_);
  in_the_making_.erase(key);
  if (!entry || entry->size() > capacity_bytes_) return;
  while (size_bytes_ + entry->size() > capacity_bytes_) {
    size_bytes_ -= items_.back().entry->size();
    positions_.erase(items_.back().key);
    items_.pop_back();
  }
  items_.push_front({key, entry});
  positions_[key] = items_.begin();
  size_bytes_ += entry->size();
}

int64_t ChunkCache::num_hits() const {
  const std::lock_guard lock(mutex_);
  return num_hits_;
}

int64_t ChunkCache::num_misses() const {
  const std::lock_guard lock(mutex_);
  return num_misses_;
}

size_t ChunkCache::size_bytes() const {
  const std::lock_guard lock(mutex_);
  return size_bytes_;
}

}  // namespace aifs::zarr
