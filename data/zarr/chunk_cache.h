// SPDX-License-Identifier: Apache-2.0
// Remembers the bytes that were used last, up to a limit. For chunks that hold several dates, and
// for the indices of shards; with one date per chunk nothing would ever be found again.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "data/zarr/buffer.h"

namespace aifs::zarr {

// Thread-safe. Threads that ask for the same absent entry at the same time wait for one of them to
// make it.
class ChunkCache {
 public:
  using Entry = std::shared_ptr<const Buffer>;

  // Keeps at most `capacity_bytes`; 0 keeps nothing.
  explicit ChunkCache(size_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  // The entry of `key`, from make() if it is not there. A null entry ("absent") is not remembered.
  // An error of make() reaches all who wait for it, and is not remembered either.
  Entry get(const std::string& key, const std::function<Entry()>& make);

  int64_t num_hits() const;
  int64_t num_misses() const;
  size_t size_bytes() const;

 private:
  struct Item {
    std::string key;
    Entry entry;
  };
  void finish(const std::string& key, const Entry& entry);

  const size_t capacity_bytes_;
  mutable std::mutex mutex_;
  std::list<Item> items_;  // the one used last in front
  std::unordered_map<std::string, std::list<Item>::iterator> positions_;
  std::unordered_map<std::string, std::shared_future<Entry>> in_the_making_;
  size_t size_bytes_ = 0;
  int64_t num_hits_ = 0, num_misses_ = 0;
};

}  // namespace aifs::zarr
