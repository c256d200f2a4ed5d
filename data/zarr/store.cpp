// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "core/check.h"
#include "core/file_io.h"

namespace aifs::zarr {

namespace {

// An open file of known size; closes itself.
class OpenFile : public ValueFile {
 public:
  // Not valid() if there is no such file.
  explicit OpenFile(std::string path, ByteCounter* counter = nullptr)
      : path_(std::move(path)), counter_(counter) {
    // Without O_NONBLOCK, opening a pipe that lies where a chunk should be would wait for ever.
    fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0) {
      if (errno == ENOENT || errno == ENOTDIR) return;
      throw ReadError(concat("cannot open '", path_, "': ", system_error_text()));
    }
    struct stat info {};
    const bool examined = ::fstat(fd_, &info) == 0;
    if (!examined || !S_ISREG(info.st_mode)) {
      ::close(fd_);
      throw DataError(examined ? concat("'", path_, "' is not a file")
                               : concat("cannot examine '", path_, "': ", system_error_text()));
    }
    size_ = static_cast<size_t>(info.st_size);
  }
  ~OpenFile() override {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  bool valid() const { return fd_ >= 0; }
  size_t size() const override { return size_; }

  void read(size_t offset, size_t length, std::byte* out) const override {
    if (counter_) counter_->fetch_add(static_cast<int64_t>(length), std::memory_order_relaxed);
    while (length > 0) {
      const ssize_t got = ::pread(fd_, out, length, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw ReadError(concat("cannot read '", path_, "': ", system_error_text()));
      if (got == 0) throw ReadError(concat("'", path_, "' became shorter while it was read"));
      out += got;
      offset += static_cast<size_t>(got);
      length -= static_cast<size_t>(got);
    }
  }

  void prefetch(size_t offset, size_t length) const override {
    char probe = 0;
    iovec vector{&probe, 1};
    const auto at = static_cast<off_t>(offset);
    if (::preadv2(fd_, &vector, 1, at, RWF_NOWAIT) >= 0 || errno != EAGAIN) return;
    ::posix_fadvise(fd_, at, static_cast<off_t>(length), POSIX_FADV_WILLNEED);
  }

 private:
  const std::string path_;
  ByteCounter* counter_;
  int fd_ = -1;
  size_t size_ = 0;
};

void check_size(const std::string& path, size_t size, size_t max_bytes) {
  if (size > max_bytes) throw TooLargeError(path, size, max_bytes);
}

void check_range(const std::string& path, size_t size, size_t offset, size_t length) {
  if (offset <= size && length <= size - offset) return;
  throw DataError(concat("'", path, "' is truncated or corrupt: it has ", size, " bytes, but ",
                         length, " are needed from byte ", offset, " on"));
}

// The names in a folder. Nothing there is no error if `may_be_absent`.
std::vector<std::string> names_in(const std::string& folder, bool may_be_absent) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  const bool is_absent = error == std::errc::no_such_file_or_directory;
  if (error && !(is_absent && may_be_absent)) {
    throw DataError(concat("cannot list '", folder, "': ", error.message()));
  }
  return names;
}

}  // namespace

TooLargeError::TooLargeError(const std::string& path, size_t bytes, size_t most_bytes)
    : DataError(concat("'", path, "' has ", bytes, " bytes, more than the ", most_bytes,
                       " that make sense for it")),
      bytes_(bytes) {}

namespace {

// A value in memory.
class ReadValue : public ValueFile {
 public:
  explicit ReadValue(std::string path) : path_(std::move(path)) {}
  Buffer& buffer() { return buffer_; }
  size_t size() const override { return buffer_.size(); }
  void read(size_t offset, size_t length, std::byte* out) const override {
    check_range(path_, size(), offset, length);
    if (length > 0) std::memcpy(out, buffer_.data() + offset, length);
  }

 private:
  const std::string path_;
  Buffer buffer_;
};

}  // namespace

std::unique_ptr<const ValueFile> Store::open(const std::string& key) const {
  const std::optional<size_t> bytes = size(key);
  if (!bytes) return nullptr;
  auto value = std::make_unique<ReadValue>(path_of(key));
  if (!get_range(key, 0, *bytes, value->buffer())) return nullptr;
  return value;
}

std::string Store::path_of(std::string_view key) const {
  return concat(name(), "/", key);
}

// ------------------------------------------------------------------------------------- folder ---

DirectoryStore::DirectoryStore(std::string folder) : folder_(std::move(folder)) {
  while (folder_.size() > 1 && folder_.back() == '/')
    folder_.pop_back();
}

bool DirectoryStore::get(const std::string& key, size_t max_bytes, Buffer& out) const {
  const std::string path = path_of(key);
  const OpenFile file(path, counter());
  if (!file.valid()) return false;
  check_size(path, file.size(), max_bytes);
  out.resize(file.size());
  file.read(0, file.size(), out.data());
  return true;
}

bool DirectoryStore::get_range(const std::string& key, size_t offset, size_t length,
                               Buffer& out) const {
  const std::string path = path_of(key);
  const OpenFile file(path, counter());
  if (!file.valid()) return false;
  check_range(path, file.size(), offset, length);
  out.resize(length);
  file.read(offset, length, out.data());
  return true;
}

std::unique_ptr<const ValueFile> open_file(const std::string& path, ByteCounter* counter) {
  auto file = std::make_unique<OpenFile>(path, counter);
  if (!file->valid()) return nullptr;
  return file;
}

std::unique_ptr<const ValueFile> DirectoryStore::open(const std::string& key) const {
  return open_file(path_of(key), counter());
}

std::optional<size_t> DirectoryStore::size(const std::string& key) const {
  const std::string path = path_of(key);
  const OpenFile file(path);
  if (!file.valid()) return std::nullopt;
  return file.size();
}

std::optional<std::vector<std::string>> DirectoryStore::names_below(
    const std::string& folder) const {
  return names_in(path_of(folder), true);
}

std::vector<std::string> DirectoryStore::root_names() const {
  std::vector<std::string> names = names_in(folder_, false);
  std::sort(names.begin(), names.end());
  return names;
}

// --------------------------------------------------------------------------------------- map ---

bool MemoryStore::get(const std::string& key, size_t max_bytes, Buffer& out) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  check_size(path_of(key), found->second.size(), max_bytes);
  return get_range(key, 0, found->second.size(), out);
}

bool MemoryStore::get_range(const std::string& key, size_t offset, size_t length,
                            Buffer& out) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  check_range(path_of(key), found->second.size(), offset, length);
  out.resize(length);
  if (length > 0) std::memcpy(out.data(), found->second.data() + offset, length);
  return true;
}

std::optional<size_t> MemoryStore::size(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return found->second.size();
}

std::optional<std::vector<std::string>> MemoryStore::names_below(const std::string& folder) const {
  std::set<std::string> names;
  const std::string prefix = folder + "/";
  for (auto it = values_.lower_bound(prefix); it != values_.end(); ++it) {
    if (!it->first.starts_with(prefix)) break;
    const size_t end = it->first.find('/', prefix.size());
    names.insert(it->first.substr(prefix.size(), end - prefix.size()));
  }
  return std::vector<std::string>(names.begin(), names.end());
}

std::vector<std::string> MemoryStore::root_names() const {
  std::set<std::string> names;
  for (const auto& [key, value] : values_)
    names.insert(key.substr(0, key.find('/')));
  return {names.begin(), names.end()};
}

}  // namespace aifs::zarr
