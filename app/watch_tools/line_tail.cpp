// SPDX-License-Identifier: Apache-2.0
#include "app/watch_tools/line_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/check.h"

namespace aifs::app {

namespace {

// Closes a descriptor at the end of its scope.
class OpenFile {
 public:
  explicit OpenFile(const fs::path& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (number_ >= 0) ::close(number_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

[[noreturn]] void cannot_read(const fs::path& path, const std::string& why) {
  throw DataError(concat("cannot read '", path.string(), "': ", why));
}

}  // namespace

std::vector<std::string> LineTail::next() {
  at_start_ = false;
  const OpenFile file(path_);
  if (file.number() < 0 && (errno == ENOENT || errno == ENOTDIR)) {
    *this = LineTail(path_);
    return {};
  }
  struct stat info {};
  if (file.number() < 0 || ::fstat(file.number(), &info) != 0)
    cannot_read(path_, system_error_text());
  if (!S_ISREG(info.st_mode)) cannot_read(path_, "it is no regular file");
  if (info.st_ino != number_ || info.st_dev != device_ || info.st_size < offset_) {
    *this = LineTail(path_);
    at_start_ = true;
    number_ = info.st_ino;
    device_ = info.st_dev;
  }
  written_s_ =
      static_cast<double>(info.st_mtim.tv_sec) + 1e-9 * static_cast<double>(info.st_mtim.tv_nsec);
  std::vector<std::string> lines;
  std::string piece(size_t{1} << 20, '\0');
  while (true) {
    const ssize_t count = ::pread(file.number(), piece.data(), piece.size(), offset_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cannot_read(path_, system_error_text());
    if (count == 0) return lines;
    offset_ += count;
    rest_.append(piece, 0, static_cast<size_t>(count));
    size_t begin = 0;
    for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
      lines.push_back(rest_.substr(begin, end - begin));
    rest_.erase(0, begin);
  }
}

}  // namespace aifs::app
