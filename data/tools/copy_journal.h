// SPDX-License-Identifier: Apache-2.0
// What an interrupted copy of a store has done: a folder inside of the new store with what was
// asked for, and a line for each file that is complete. One process at a time.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "core/file_io.h"
#include "data/zarr/json_text.h"

namespace aifs::data {

class CopyJournal {
 public:
  // Begins a copy into `store`, which is not there or empty, or goes on with one of the same
  // request. `folder` is below it. Throws ConfigError if something else is there, or if another
  // process is copying into it.
  CopyJournal(const fs::path& store, const fs::path& folder, const zarr::Json& request);
  ~CopyJournal();
  CopyJournal(const CopyJournal&) = delete;
  CopyJournal& operator=(const CopyJournal&) = delete;

  bool is_done(const std::string& key) const;
  // Returns the checksum of the values of a file; nothing if it is not done.
  std::optional<uint32_t> checksum(const std::string& key) const;
  // Thread-safe, as the above.
  void add(const std::string& key, uint32_t checksum);
  void forget(const std::set<std::string>& keys);
  // The copy is complete: removes the folder.
  void close();

 private:
  void read_lines();

  fs::path folder_;
  std::optional<FileLock> lock_;
  mutable std::mutex mutex_;
  std::map<std::string, uint32_t> done_;
  int fd_ = -1;
};

}  // namespace aifs::data
