// SPDX-License-Identifier: Apache-2.0
// A file that is nowhere but in memory, for readers that want a path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/check.h"

namespace aifs::fuzz {

class MemoryFile {
 public:
  MemoryFile(const uint8_t* bytes, size_t size) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    AIFS_CHECK(fd_ >= 0 && ::write(fd_, bytes, size) == static_cast<ssize_t>(size));
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace aifs::fuzz
