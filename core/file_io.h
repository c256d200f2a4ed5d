// SPDX-License-Identifier: Apache-2.0
// Files: whole reads, atomic writes, mapped reads, checksums. Every failure is an Error that names
// the file and the reason of the operating system.
//
// File systems differ in what they offer: network and object stores often have no locks, no flush
// of folders, no renaming of folders. What such a file system answers with "there is no such
// operation" is done without here; core/folder_trial.h says at the start of a run what is missing.
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
// Throws the same DataError if a first byte cannot be read for another reason than that there is
// none.
void check_readable(const fs::path& path);

// Writes `content` beside `path` (same folder, a temporary name), flushes it to the device and
// renames it over `path`: readers see the old or the new content, never a part.
void write_file_atomic(const fs::path& path, std::string_view content);

// Appends the whole text or nothing, behind `header` if the file is new or empty. Returns the
// reason of a failure, or "". The file is opened every time: an open descriptor would go on
// accepting data after its folder was removed.
std::string append_whole(const fs::path& path, std::string_view text, std::string_view header = {});

// "node12-4711-5f3a90c2": host, process and chance. Another one at every call, and on every host
// and in every container that writes to the same file system.
std::string unique_suffix();
// A name beside `path`, nobody else's, for what is renamed to `path` once it is complete.
fs::path temporary_name(const fs::path& path);

// Renames a complete file, over what is there. Without renaming on this file system its bytes are
// copied instead, and readers may see a part. Throws Error if neither can be done.
void replace_file(const fs::path& from, const fs::path& to);
// Renames a folder to a name that is free. False if this file system cannot; throws Error for any
// other failure.
bool rename_folder(const fs::path& from, const fs::path& to);
// True if something, or a folder, is there; links are followed. Throws DataError if that cannot be
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
// Flushes an open file, which errors call `path`.
void flush_file(int descriptor, const fs::path& path);

// True if a failed system call means that the file system has no such operation.
bool is_missing_operation(int error);

// Opens /dev/null as standard input, output and error where one of them is closed: the first file
// that is opened would take its number, and get what is printed. For the start of a program.
void open_standard_streams();

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

// A file mapped read-only, or read where the file system cannot map. The bytes stay valid as long
// as the object lives.
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
  std::string copy_;  // where the file cannot be mapped
  std::span<const std::byte> bytes_;
};

// The text of the last failed system call: "No such file or directory".
std::string system_error_text();

}  // namespace aifs
