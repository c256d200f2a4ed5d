// SPDX-License-Identifier: Apache-2.0
// A folder whose chunks are copied to a fast disk of this host when they are first read, and read
// from there ever after. Several processes may share the copies, and one count of their bytes; they
// survive restarts. A copy is used as long as its size and time are those of the original. Whatever
// goes wrong with the cache, reading goes on from the original.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>

#include "data/zarr/store.h"

namespace aifs::zarr {

class CachingStore : public DirectoryStore {
 public:
  // Copies of the store in `folder` go to a folder of their own in `cache`/aifs-chunks, which is
  // created; nothing else in `cache` is touched. All stores that are cached there by processes of
  // this host have at most `limit_bytes` together; what was not used for longest goes first. Throws
  // DataError if the cache cannot be written at all.
  CachingStore(const std::string& folder, const std::filesystem::path& cache, int64_t limit_bytes);

  // Chunks from their copies, everything else from the original.
  std::unique_ptr<const ValueFile> open(const std::string& key) const override;
  bool get(const std::string& key, size_t max_bytes, Buffer& out) const override;

  // Removes the copy of a chunk, damaged by the disk it is on.
  bool drop_copy(const std::string& key) const override;

  // Chunks that were read from copies, and that were copied, by this object.
  int64_t num_hits() const { return hits_; }
  int64_t num_copies() const { return copies_; }

 private:
  std::filesystem::path copy_of(const std::string& key) const;
  // The copy, if it is there or could be made; else null.
  std::unique_ptr<const ValueFile> cached(const std::string& key) const;
  bool make_copy(const std::string& key, const std::filesystem::path& copy) const;
  // Copies the bytes; false if that failed, with the reason told.
  bool fill(const ValueFile& original, int descriptor) const;
  // Counts `bytes` more for a copy in the making, after removing others if they would be too many;
  // false: there is no room.
  bool make_room(int64_t bytes, int descriptor) const;
  int64_t remove_oldest(int64_t most_bytes) const;  // returns the bytes that are left
  void give_up(const std::string& why) const;

  const std::filesystem::path cache_;   // of all stores
  const std::filesystem::path folder_;  // of this store in it
  const int64_t limit_bytes_;
  mutable std::atomic<int64_t> hits_ = 0, copies_ = 0;
  mutable std::atomic<bool> broken_ = false;
  mutable std::mutex mutex_;  // of the count, among threads; processes lock its file
};

}  // namespace aifs::zarr
