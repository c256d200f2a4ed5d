// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/caching_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "core/check.h"
#include "core/file_io.h"
#include "core/log.h"

namespace aifs::zarr {

namespace {

constexpr const char* kCopying = ".copying";  // the end of names of copies in the making
constexpr int64_t kStale_s = 600;             // a copy in the making is given up after so long
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
        fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) {}
  ~NewFile() {
    if (fd_ >= 0) ::close(fd_);
    if (fd_ >= 0 && !kept_) ::unlink(path_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  int descriptor() const { return fd_; }
  bool write(const std::byte* bytes, size_t length) const {
    while (length > 0) {
      const ssize_t written = ::write(fd_, bytes, length);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      bytes += written;
      length -= static_cast<size_t>(written);
    }
    return true;
  }
  void keep() { kept_ = true; }

 private:
  fs::path path_;
  int fd_;
  bool kept_ = false;
};

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
      cache_(cache),
      folder_(cache / sha256_hex(absolute_path(name()).string()).substr(0, 16)),
      limit_bytes_(limit_bytes) {
  try {
    make_directories(folder_);
    write_file_atomic(folder_ / "origin", absolute_path(name()).string() + "\n");
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
  make_room(static_cast<int64_t>(original->size()));
  NewFile file(partial);
  if (file.descriptor() < 0) {
    if (errno != EEXIST) give_up(system_error_text());
    return false;
  }
  const Stamp before = stamp_of(path_of(key));
  std::vector<std::byte> piece(std::min(kPieceBytes, original->size()));
  for (size_t at = 0; at < original->size(); at += piece.size()) {
    const size_t length = std::min(piece.size(), original->size() - at);
    original->read(at, length, piece.data());
    if (file.write(piece.data(), length)) continue;
    give_up(system_error_text());
    return false;
  }
  const timespec times[2] = {before.modified, before.modified};
  if (::futimens(file.descriptor(), times) != 0 || ::rename(partial.c_str(), copy.c_str()) != 0) {
    give_up(system_error_text());
    return false;
  }
  file.keep();
  return true;
}

// Removes what was not used for longest. The count of this process is good enough until the limit
// is near; then all files are looked at, for others add to them, too.
void CachingStore::make_room(int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  if (known_bytes_ >= 0 && known_bytes_ + bytes <= limit_bytes_) {
    known_bytes_ += bytes;
    return;
  }
  struct Copy {
    fs::path path;
    int64_t bytes = 0;
    timespec used{};
  };
  std::vector<Copy> copies;
  int64_t total = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(cache_, error), end; !error && it != end;
       it.increment(error)) {
    struct stat info {};
    if (::stat(it->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (it->path().filename() == "origin") continue;
    copies.push_back({it->path(), info.st_size, info.st_atim});
    total += info.st_size;
  }
  std::sort(copies.begin(), copies.end(), [](const Copy& a, const Copy& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const Copy& copy : copies) {
    if (total + bytes <= limit_bytes_) break;
    if (copy.path.string().ends_with(kCopying)) continue;
    if (::unlink(copy.path.c_str()) == 0) total -= copy.bytes;
  }
  known_bytes_ = total + bytes;
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
