// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/caching_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/file_io.h"
#include "core/log.h"

namespace aifs::zarr {

namespace {

constexpr const char* kFolder = "aifs-chunks";  // in the cache: nothing beside it is touched
constexpr const char* kCount = "bytes";         // the shared count in it
constexpr const char* kOrigin = "origin";       // in the folder of a store: where that is
constexpr const char* kCopying = ".copying";    // the end of names of copies in the making
constexpr double kKept = 0.9;                   // of the limit, when copies must go
constexpr int64_t kStale_s = 600;               // a copy in the making is given up after so long
constexpr size_t kPieceBytes = size_t{4} << 20;

struct Stamp {
  int64_t bytes = -1;  // -1: not there
  timespec modified{};

  bool operator==(const Stamp& other) const {
    return bytes == other.bytes && modified.tv_sec == other.modified.tv_sec &&
           modified.tv_nsec == other.modified.tv_nsec;
  }
};

Stamp stamp_of(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  return {info.st_size, info.st_mtim};
}

// A file that is closed, and removed unless it is kept.
class NewFile {
 public:
  explicit NewFile(fs::path path)
      : path_(std::move(path)),
        fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {}
  ~NewFile() {
    if (fd_ >= 0) ::close(fd_);
    if (fd_ >= 0 && !kept_) ::unlink(path_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  int descriptor() const { return fd_; }
  void keep() { kept_ = true; }

 private:
  fs::path path_;
  int fd_;
  bool kept_ = false;
};

bool write_all(int descriptor, const std::byte* bytes, size_t length) {
  while (length > 0) {
    const ssize_t written = ::write(descriptor, bytes, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    length -= static_cast<size_t>(written);
  }
  return true;
}

// The number of bytes of all copies, in a file that processes lock while they change it. Where a
// file system has no locks, processes may be off by what they add at the same moment.
class SharedCount {
 public:
  explicit SharedCount(const fs::path& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~SharedCount() {
    if (fd_ >= 0) ::close(fd_);  // unlocks
  }
  SharedCount(const SharedCount&) = delete;
  SharedCount& operator=(const SharedCount&) = delete;

  bool is_open() const { return fd_ >= 0; }
  // Nothing if nobody has counted yet.
  std::optional<int64_t> value() const {
    int64_t bytes = 0;
    if (::pread(fd_, &bytes, sizeof bytes, 0) != sizeof bytes || bytes < 0) return std::nullopt;
    return bytes;
  }
  bool set(int64_t bytes) const { return ::pwrite(fd_, &bytes, sizeof bytes, 0) == sizeof bytes; }

 private:
  int fd_;
};

struct Copy {
  fs::path path;
  int64_t bytes = 0;
  timespec used{};
};

// All copies in a folder of folders, those in the making, too. Others may add and remove some
// meanwhile.
std::vector<Copy> list_copies(const fs::path& cache) {
  std::vector<Copy> copies;
  std::error_code error;
  for (fs::directory_iterator store(cache, error), end; !error && store != end;
       store.increment(error)) {
    std::error_code inner;
    for (fs::directory_iterator it(store->path(), inner); !inner && it != end;
         it.increment(inner)) {
      struct stat info {};
      if (::stat(it->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
      if (!it->path().filename().string().starts_with(kOrigin))  // nor while it is written
        copies.push_back({it->path(), info.st_size, info.st_atim});
    }
  }
  return copies;
}

// Removes what a process that died was copying. True if the name is free now.
bool remove_stale(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return true;
  if (::time(nullptr) - info.st_mtim.tv_sec < kStale_s) return false;
  return ::unlink(path.c_str()) == 0;
}

}  // namespace

CachingStore::CachingStore(const std::string& folder, const fs::path& cache, int64_t limit_bytes)
    : DirectoryStore(folder),
      cache_(cache / kFolder),
      folder_(cache_ / sha256_hex(absolute_path(name()).string()).substr(0, 16)),
      limit_bytes_(limit_bytes) {
  try {
    make_directories(folder_);
    if (!path_exists(folder_ / kOrigin))
      write_file_atomic(folder_ / kOrigin, absolute_path(name()).string() + "\n");
  } catch (const Error& error) {
    throw DataError(concat("'", cache.string(), "' cannot be a cache: ", error.what()),
                    "choose another folder in data.cache.dir, or none");
  }
}

fs::path CachingStore::copy_of(const std::string& key) const {
  std::string file = key;
  std::replace(file.begin(), file.end(), '/', '_');
  return folder_ / file;
}

void CachingStore::give_up(const std::string& why) const {
  if (!broken_.exchange(true))
    log::warning("the cache '", cache_.string(), "' is not used any more: ", why);
}

std::unique_ptr<const ValueFile> CachingStore::cached(const std::string& key) const {
  if (broken_ || !key.starts_with("data/") || key.ends_with(".zarray") ||
      key.ends_with(".zattrs") || key.ends_with(".json"))
    return nullptr;
  const Stamp original = stamp_of(path_of(key));
  if (original.bytes < 0 || original.bytes > limit_bytes_) return nullptr;
  const fs::path copy = copy_of(key);
  const bool is_there = stamp_of(copy) == original;
  if (!is_there && !make_copy(key, copy)) return nullptr;
  ++(is_there ? hits_ : copies_);
  const timespec now_and_same[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  ::utimensat(AT_FDCWD, copy.c_str(), now_and_same, 0);  // it was used: the oldest goes first
  return open_file(copy.string(), counter());            // null if another process has removed it
}

bool CachingStore::make_copy(const std::string& key, const fs::path& copy) const {
  const fs::path partial = copy.string() + kCopying;
  if (!remove_stale(partial)) return false;  // somebody else is at it
  const auto original = DirectoryStore::open(key);
  if (!original) return false;
  NewFile file(partial);
  if (file.descriptor() < 0) {
    if (errno != EEXIST) give_up(system_error_text());
    return false;
  }
  const Stamp before = stamp_of(path_of(key));
  if (!make_room(static_cast<int64_t>(original->size()), file.descriptor())) return false;
  if (!fill(*original, file.descriptor())) return false;
  const timespec times[2] = {before.modified, before.modified};
  if (::futimens(file.descriptor(), times) != 0 || ::rename(partial.c_str(), copy.c_str()) != 0) {
    give_up(system_error_text());
    return false;
  }
  file.keep();
  return true;
}

bool CachingStore::fill(const ValueFile& original, int descriptor) const {
  std::vector<std::byte> piece(std::min(kPieceBytes, original.size()));
  for (size_t at = 0; at < original.size(); at += piece.size()) {
    const size_t length = std::min(piece.size(), original.size() - at);
    original.read(at, length, piece.data());
    if (write_all(descriptor, piece.data(), length)) continue;
    give_up(system_error_text());
    return false;
  }
  return true;
}

bool CachingStore::make_room(int64_t bytes, int descriptor) const {
  const std::lock_guard lock(mutex_);
  const SharedCount count(cache_ / kCount);
  if (!count.is_open()) {
    give_up(system_error_text());
    return false;
  }
  std::optional<int64_t> total = count.value();
  if (!total || *total + bytes > limit_bytes_) {
    const auto most = static_cast<int64_t>(kKept * static_cast<double>(limit_bytes_));
    total = remove_oldest(std::max<int64_t>(0, std::min(most, limit_bytes_ - bytes)));
  }
  if (*total + bytes > limit_bytes_) {  // copies that others made without being counted
    count.set(*total);
    return false;
  }
  // From now on its file has its size, for whoever counts anew.
  if (count.set(*total + bytes) && ::ftruncate(descriptor, bytes) == 0) return true;
  give_up(system_error_text());
  return false;
}

int64_t CachingStore::remove_oldest(int64_t most_bytes) const {
  std::vector<Copy> copies = list_copies(cache_);
  std::sort(copies.begin(), copies.end(), [](const Copy& a, const Copy& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  int64_t total = 0;
  for (const Copy& copy : copies)
    total += copy.bytes;
  for (const Copy& copy : copies) {
    if (total <= most_bytes) break;
    if (copy.path.extension() == kCopying) continue;
    if (::unlink(copy.path.c_str()) == 0 || errno == ENOENT) total -= copy.bytes;
  }
  return total;
}

bool CachingStore::drop_copy(const std::string& key) const {
  if (::unlink(copy_of(key).c_str()) != 0) return false;
  log::warning("the copy of '", path_of(key), "' in the cache '", cache_.string(),
               "' is damaged: it is made anew");
  return true;
}

std::unique_ptr<const ValueFile> CachingStore::open(const std::string& key) const {
  if (auto copy = cached(key)) return copy;
  return DirectoryStore::open(key);
}

bool CachingStore::get(const std::string& key, size_t max_bytes, Buffer& out) const {
  const auto copy = cached(key);
  if (!copy || copy->size() > max_bytes) return DirectoryStore::get(key, max_bytes, out);
  out.resize(copy->size());
  copy->read(0, copy->size(), out.data());
  return true;
}

}  // namespace aifs::zarr
