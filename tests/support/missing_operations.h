// SPDX-License-Identifier: Apache-2.0
// A file system that lacks operations, for one source of a test program: the system calls below are
// the program's own, also for libraries if it exports its symbols (ENABLE_EXPORTS).
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#ifndef AIFS_SANITIZE  // sanitizers have calls of their own
#include <sys/mman.h>
#endif

namespace aifs::test {

// The errors that calls fail with; 0: they do not.
struct MissingOperations {
  int flush_file = 0, flush_folder = 0, lock = 0, map = 0, reserve = 0, write = 0;
  int rename_file = 0, rename_over = 0,
      rename_folder = 0;   // over: of files, to names that are taken
  int64_t write_most = 0;  // bytes that can be written before `write`
};
inline MissingOperations missing_now;
inline int64_t num_locks = 0;
// Files whose path holds this take so long to be flushed.
inline const char* slow_to_flush = nullptr;
inline unsigned slow_flush_s = 0;

inline bool is_slow_to_flush(int fd) {
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = ::readlink(link, path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  return std::string(path).find(slow_to_flush) != std::string::npos;
}

// These are missing while the object lives.
class WithoutOperations {
 public:
  explicit WithoutOperations(const MissingOperations& missing) { missing_now = missing; }
  ~WithoutOperations() { missing_now = {}; }
  WithoutOperations(const WithoutOperations&) = delete;
  WithoutOperations& operator=(const WithoutOperations&) = delete;
};

inline int fails_with(int error) {
  errno = error;
  return -1;
}

}  // namespace aifs::test

extern "C" {

int fsync(int fd) {
  if (aifs::test::slow_to_flush && aifs::test::is_slow_to_flush(fd))
    ::sleep(aifs::test::slow_flush_s);
  struct stat info {};
  const bool is_folder = ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
  const auto& missing = aifs::test::missing_now;
  const int error = is_folder ? missing.flush_folder : missing.flush_file;
  return error != 0 ? aifs::test::fails_with(error) : static_cast<int>(::syscall(SYS_fsync, fd));
}

int flock(int fd, int operation) noexcept {
  ++aifs::test::num_locks;
  const int error = aifs::test::missing_now.lock;
  return error != 0 ? aifs::test::fails_with(error)
                    : static_cast<int>(::syscall(SYS_flock, fd, operation));
}

int rename(const char* from, const char* to) noexcept {
  struct stat info {};
  const bool is_folder = ::stat(from, &info) == 0 && S_ISDIR(info.st_mode);
  const bool is_taken = ::lstat(to, &info) == 0;
  const auto& missing = aifs::test::missing_now;
  int error = is_folder ? missing.rename_folder : missing.rename_file;
  if (!is_folder && is_taken && missing.rename_over != 0) error = missing.rename_over;
  return error != 0 ? aifs::test::fails_with(error)
                    : static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
  const int error = aifs::test::missing_now.reserve;
  return error != 0 ? aifs::test::fails_with(error)
                    : static_cast<int>(::syscall(SYS_fallocate, fd, mode, offset, length));
}

#ifndef AIFS_SANITIZE
ssize_t write(int fd, const void* data, size_t bytes) {
  auto& missing = aifs::test::missing_now;
  if (missing.write != 0 && fd > 2) {
    if (missing.write_most < static_cast<int64_t>(bytes))
      return aifs::test::fails_with(missing.write);
    missing.write_most -= static_cast<int64_t>(bytes);
  }
  return ::syscall(SYS_write, fd, data, bytes);
}

void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  const int error = fd >= 0 ? aifs::test::missing_now.map : 0;
  if (error != 0) {
    errno = error;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, bytes, protection, flags, fd, offset));
}
#endif

}  // extern "C"
