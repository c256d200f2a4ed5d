// SPDX-License-Identifier: Apache-2.0
// Files: whole reads, atomic writes, mapped reads, checksums. Every failure is an Error that names
// the file and the reason of the operating system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace aifs {

namespace fs = std::filesystem;

// The whole content. Throws DataError if the file is missing, is a folder or cannot be read.
std::string read_file(const fs::path& path);

// Writes `content` beside `path` (same folder, a temporary name), flushes it to the device and
// renames it over `path`: readers see the old or the new content, never a part.
void write_file_atomic(const fs::path& path, std::string_view content);

// Whether something, or a folder, is there; links are followed. Throws DataError if that cannot be
// found out: no rights, links in a circle, a name that is too long.
bool path_exists(const fs::path& path);
bool folder_exists(const fs::path& path);

// ": a link to 'x', which is not there" if the path is such a link, else "".
std::string dangling_link_text(const fs::path& path);

// From the root on. Throws Error if the present folder is gone.
fs::path absolute_path(const fs::path& path);

// Creates the folder and its parents. Throws Error naming the part that cannot be created.
void make_directories(const fs::path& path);

// Asks the operating system to make a finished file or folder survive a power loss.
void sync_to_disk(const fs::path& path);

// Holds a file under the name of one process, until destroyed or the process ends however it ends.
class FileLock {
 public:
  // Creates the file if needed. Throws Error if it cannot be written; held() tells whether another
  // process has it. A file system without locks counts as held by us.
  explicit FileLock(const fs::path& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const { return held_; }

 private:
  int fd_ = -1;
  bool held_ = false;
};

// Lower-case hexadecimal SHA-256 (64 characters).
std::string sha256_hex(std::string_view bytes);
std::string sha256_hex(std::span<const std::byte> bytes);

// SHA-256 over several pieces, in the order of the calls.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(const void* data, size_t bytes);
  // The digest; the object cannot be updated afterwards.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A file mapped read-only. The bytes stay valid as long as the object lives.
class MappedFile {
 public:
  explicit MappedFile(const fs::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return bytes_; }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  std::span<const std::byte> bytes_;
};

// The text of the last failed system call: "No such file or directory".
std::string system_error_text();

}  // namespace aifs
