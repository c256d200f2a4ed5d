// SPDX-License-Identifier: Apache-2.0
#include "core/folder_trial.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <numeric>
#include <optional>

#include "core/check.h"
#include "core/missing_operation.h"
#include "core/stale_files.h"

namespace aifs {

namespace {

constexpr const char* kTrial = ".trial";
constexpr const char* kFullHint = "is the disk full or the quota used up?";

// The folder, or its nearest parent that is there. Throws Error if that is no folder.
fs::path nearest_folder(const fs::path& folder) {
  std::error_code ignored;
  fs::path path = fs::absolute(folder, ignored);
  while (path.has_relative_path() &&
         fs::symlink_status(path, ignored).type() == fs::file_type::not_found)
    path = path.parent_path();
  if (fs::is_directory(path, ignored)) return path;
  make_directories(folder);  // says what is wrong
  return folder;
}

// A file of a trial, which goes with the object.
class TrialFile {
 public:
  explicit TrialFile(const fs::path& folder)
      : path_(temporary_name(folder / kTrial)),
        fd_(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)),
        open_error_(fd_ < 0 ? errno : 0) {}
  ~TrialFile() {
    if (fd_ < 0) return;
    ::close(fd_);
    ::unlink(path_.c_str());
  }
  TrialFile(const TrialFile&) = delete;
  TrialFile& operator=(const TrialFile&) = delete;

  int fd() const { return fd_; }
  const fs::path& path() const { return path_; }
  // Why there is no file, or 0.
  int open_error() const { return open_error_; }

 private:
  fs::path path_;
  int fd_, open_error_;
};

// The reason of a failed call.
std::string text_of(int error) {
  errno = error;
  return system_error_text();
}

[[noreturn]] void cannot_write(const fs::path& folder, int error) {
  throw Error(concat("cannot write in folder '", folder.string(), "': ", text_of(error)),
              error == ENOSPC || error == EDQUOT ? kFullHint : "");
}

std::string amount(int64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit)
    value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", value, kUnits[unit]);
  return bytes < 1024 ? concat(bytes, " bytes") : concat(bytes, " bytes (", text, ")");
}

// Bytes and files that the file system says to be free; nothing where it does not know.
struct Free {
  std::optional<int64_t> bytes, files;
};
Free free_in(const fs::path& folder) {
  struct statvfs info {};
  Free free;
  if (::statvfs(folder.c_str(), &info) != 0) return free;
  const bool all = ::geteuid() == 0;  // the system keeps a reserve for the superuser
  const auto times = [](auto count, auto size) {
    return static_cast<int64_t>(static_cast<double>(count) * static_cast<double>(size));
  };
  if (info.f_blocks > 0) free.bytes = times(all ? info.f_bfree : info.f_bavail, info.f_frsize);
  if (info.f_files > 0) free.files = times(all ? info.f_ffree : info.f_favail, 1);
  return free;
}

// Makes a file `bytes` long with space of its own; errno, or 0.
int reserve(int fd, int64_t bytes) {
  int status = 0;
  do {
    status = ::fallocate(fd, 0, 0, bytes);
  } while (status != 0 && errno == EINTR);
  return status == 0 ? 0 : errno;
}

// The largest length that can be reserved below `bytes`, which cannot.
int64_t most_reserved(int fd, int64_t bytes) {
  int64_t good = 0, bad = bytes;
  for (int step = 0; step < 20 && bad - good > 1; ++step) {
    if (::ftruncate(fd, 0) != 0) break;
    const int64_t middle = good + (bad - good) / 2;
    (reserve(fd, middle) == 0 ? good : bad) = middle;
  }
  return good;
}

// Bytes that neither compress nor repeat within a piece.
std::string noise(size_t bytes) {
  std::string piece(bytes, '\0');
  uint64_t state = 0x853c49e6748fea9bU;
  for (char& letter : piece) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    letter = static_cast<char>(state >> 56U);
  }
  return piece;
}

struct Written {
  int64_t bytes = 0;
  int error = 0;
};
// Quotas of network file systems show when data leave this machine: with the flush.
Written write_noise(int fd, int64_t bytes) {
  static const std::string kPiece = noise(size_t{1} << 20);
  Written written;
  while (written.bytes < bytes) {
    const auto count = std::min(bytes - written.bytes, static_cast<int64_t>(kPiece.size()));
    const ssize_t done = ::write(fd, kPiece.data(), static_cast<size_t>(count));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      written.error = errno;
      return written;
    }
    written.bytes += done;
  }
  if (::fsync(fd) != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG))
    written.error = errno;
  return written;
}

}  // namespace

void check_writable(const fs::path& folder) {
  const fs::path nearest = nearest_folder(folder);
  constexpr double kQuiet_s = 10.0;  // a trial is short
  remove_stale_files(nearest, kTrial, kQuiet_s);
  const TrialFile file(nearest);
  if (file.open_error() != 0) cannot_write(nearest, file.open_error());
  const Written written = write_noise(file.fd(), 4096);
  if (written.error != 0) cannot_write(nearest, written.error);
}

void check_room(const fs::path& folder, const std::string& what,
                const std::vector<int64_t>& file_bytes, int64_t most_written) {
  const fs::path nearest = nearest_folder(folder);
  const int64_t needed = std::accumulate(file_bytes.begin(), file_bytes.end(), int64_t{0});
  const auto fail = [&](const std::string& there, const std::string& hint) {
    throw Error(concat(what, " takes ", amount(needed), " in '", folder.string(), "', and ", there),
                hint);
  };
  rlimit limit{};
  const int64_t largest =
      file_bytes.empty() ? 0 : *std::max_element(file_bytes.begin(), file_bytes.end());
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      static_cast<rlim_t>(largest) > limit.rlim_cur) {
    fail(concat("this process may write files of at most ",
                amount(static_cast<int64_t>(limit.rlim_cur)), ", but one has ", amount(largest)),
         "raise the limit of file sizes (ulimit -f)");
  }
  const Free free = free_in(nearest);
  if (free.bytes && *free.bytes < needed) fail(concat(amount(*free.bytes), " are free"), kFullHint);
  const auto num_files = static_cast<int64_t>(file_bytes.size());
  if (free.files && *free.files < num_files)
    fail(concat("the file system has ", *free.files, " files left"), kFullHint);

  std::vector<std::unique_ptr<TrialFile>> files;
  int64_t done = 0, written = 0;
  for (const int64_t bytes : file_bytes) {
    const TrialFile& file = *files.emplace_back(std::make_unique<TrialFile>(nearest));
    if (file.open_error() != 0) cannot_write(nearest, file.open_error());
    int error = bytes > 0 ? reserve(file.fd(), bytes) : 0;
    int64_t most = 0;
    if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
      most = most_reserved(file.fd(), bytes);
    } else if (error != 0) {  // cannot reserve
      const Written result = write_noise(file.fd(), std::min(bytes, most_written - written));
      most = result.bytes;
      error = result.error;
      written += result.bytes;
    }
    if (error != 0) {
      fail(concat("only ", amount(done + most), " could be written there: ", text_of(error)),
           kFullHint);
    }
    done += bytes;
  }
}

std::vector<std::string> missing_operations(const fs::path& folder) {
  const fs::path base = nearest_folder(folder);
  const TrialFile first(base), second(base);
  for (const TrialFile* file : {&first, &second}) {
    if (file->open_error() != 0) cannot_write(base, file->open_error());
  }
  std::vector<std::string> missing;
  const auto note = [&](bool is_missing, const char* what) {
    if (!is_missing) cannot_write(base, errno);
    missing.emplace_back(what);
  };
  if (::flock(first.fd(), LOCK_EX | LOCK_NB) != 0 && errno != EWOULDBLOCK)
    missing.emplace_back("no locks: a second run in this folder would not be noticed");
  if (::fsync(first.fd()) != 0)
    note(is_missing_flush(errno, /*of_folder=*/false),
         "no flush of files: a power failure may damage the last checkpoint");
  const int entry = ::open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int flush_error = entry >= 0 && ::fsync(entry) == 0 ? 0 : errno;
  if (entry >= 0) ::close(entry);
  if (flush_error != 0) {
    errno = flush_error;
    note(is_missing_flush(errno, /*of_folder=*/true),
         "no flush of folders: a power failure may lose the last checkpoint");
  }
  if (::rename(first.path().c_str(), second.path().c_str()) != 0)
    note(errno == EEXIST || is_missing_rename(errno),
         "no renaming over files: they are replaced in place");

  const fs::path one = temporary_name(base / kTrial), other = temporary_name(base / kTrial);
  std::error_code ignored;
  if (fs::create_directory(one, ignored)) {
    const TrialFile inside(one);  // some stores rename empty folders only
    const int error = ::rename(one.c_str(), other.c_str()) == 0 ? 0 : errno;
    for (const fs::path& path : {one, other})
      fs::remove_all(path, ignored);
    errno = error;
    if (error != 0)
      note(is_missing_rename(error),
           "no renaming of folders: checkpoints are whole from their last file on");
  }
  return missing;
}

}  // namespace aifs
