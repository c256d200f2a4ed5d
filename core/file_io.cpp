// SPDX-License-Identifier: Apache-2.0
#include "core/file_io.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/host.h"
#include "core/missing_operation.h"

namespace aifs {

namespace {

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // Closes now and reports whether the system accepted all that was written.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

Descriptor open_for_reading(const fs::path& path, struct stat& info) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    throw DataError(concat("cannot open '", path.string(), "': ", system_error_text()));
  }
  if (::fstat(file.get(), &info) != 0) {
    throw DataError(concat("cannot examine '", path.string(), "': ", system_error_text()));
  }
  if (S_ISDIR(info.st_mode)) {
    throw DataError(concat("'", path.string(), "' is a folder, a file was expected"));
  }
  return file;
}

void write_all(int fd, std::string_view content, const fs::path& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      throw Error(concat("cannot write '", path.string(), "': ", system_error_text()),
                  "is the disk full or the quota used up?");
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
}

// Puts the bytes of a file where `to` is, for file systems that cannot rename.
void copy_content(const fs::path& from, const fs::path& to) {
  struct stat info {};
  const Descriptor source = open_for_reading(from, info);
  Descriptor target(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!target.valid())
    throw Error(concat("cannot write '", to.string(), "': ", system_error_text()));
  std::string piece(size_t{1} << 20, '\0');
  for (;;) {
    const ssize_t got = ::read(source.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(concat("cannot read '", from.string(), "': ", system_error_text()));
    if (got == 0) break;
    write_all(target.get(), std::string_view(piece).substr(0, static_cast<size_t>(got)), to);
  }
  flush_file(target.get(), to);
  if (!target.close())
    throw Error(concat("cannot write '", to.string(), "': ", system_error_text()));
}

// Flushing is left out where it is not offered.
bool flushed(int fd) {
  int status = 0;
  do {
    status = ::fsync(fd);
  } while (status != 0 && errno == EINTR);
  if (status == 0) return true;
  const int error = errno;
  struct stat info {};
  const bool is_folder = ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
  errno = error;
  return is_missing_flush(error, is_folder);
}

uint32_t random_bits() {
  uint32_t bits = 0;
  if (::getrandom(&bits, sizeof bits, GRND_NONBLOCK) == sizeof bits) return bits;
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();  // early in a boot
  return static_cast<uint32_t>(static_cast<uint64_t>(now) * 0x9e3779b97f4a7c15U >> 32U);
}

}  // namespace

std::string system_error_text() {
  return std::strerror(errno);
}

bool is_missing_operation(int error) {
  return error == EINVAL || error == ENOSYS || error == ENOTSUP || error == EOPNOTSUPP ||
         error == ENOTTY || error == ENOLCK || error == ENODEV;
}

// Some file systems answer so with "bad descriptor", of folders also with "not permitted".
bool is_missing_flush(int error, bool of_folder) {
  return error == EBADF || is_missing_operation(error) ||
         (of_folder && (error == EPERM || error == EACCES || error == EROFS || error == EISDIR));
}

// Layers of containers rename only files and folders of the topmost (EXDEV), and some object stores
// only folders of a few files (EMFILE).
bool is_missing_rename(int error) {
  return error == EXDEV || error == EMFILE || error == EPERM || is_missing_operation(error);
}

namespace {

// False if a write fails.
bool wrote_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

std::string append_whole(const fs::path& path, std::string_view text, std::string_view header) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return system_error_text();
  std::string reason;
  struct stat before {};
  if (::fstat(fd, &before) != 0) {
    reason = system_error_text();
  } else if (!(before.st_size > 0 || wrote_all(fd, header)) || !wrote_all(fd, text)) {
    reason = system_error_text();
    if (::ftruncate(fd, before.st_size) != 0) reason += "; a part of it remains";
  }
  if (::close(fd) != 0 && reason.empty()) reason = system_error_text();
  return reason;
}

std::string unique_suffix() {
  constexpr size_t kMostOfHost = 24;  // names of files are at most 255 bytes long
  std::string host = host_name().substr(0, kMostOfHost);
  for (char& letter : host) {
    if (letter == '/' || letter == ' ') letter = '_';
  }
  char bits[16];
  std::snprintf(bits, sizeof bits, "%08x", random_bits());
  return concat(host, "-", ::getpid(), "-", bits);
}

fs::path temporary_name(const fs::path& path) {
  return path.string() + ".tmp-" + unique_suffix();
}

void open_standard_streams() {
  for (const int number : {0, 1, 2}) {
    if (::fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one: those below are open.
    static_cast<void>(::open("/dev/null", number == 0 ? O_RDONLY : O_WRONLY));
  }
}

std::string read_file(const fs::path& path) {
  struct stat info {};
  const Descriptor file = open_for_reading(path, info);
  // One byte more than the size, so that the end is met; a pipe has no size and grows on the way.
  std::string content(static_cast<size_t>(info.st_size) + 1, '\0');
  size_t done = 0;
  for (;;) {
    if (done == content.size()) content.resize(2 * done + 65536);
    const ssize_t got = ::read(file.get(), content.data() + done, content.size() - done);
    if (got < 0) {
      if (errno == EINTR) continue;
      throw DataError(concat("cannot read '", path.string(), "': ", system_error_text()));
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  content.resize(done);
  return content;
}

void check_readable(const fs::path& path) {
  struct stat info {};
  const Descriptor file = open_for_reading(path, info);
  char first = 0;
  if (::read(file.get(), &first, 1) < 0)
    throw DataError(concat("cannot read '", path.string(), "': ", system_error_text()));
}

void write_file_atomic(const fs::path& path, std::string_view content) {
  const fs::path temporary = temporary_name(path);
  try {
    Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file.valid()) {
      throw Error(concat("cannot create '", temporary.string(), "': ", system_error_text()));
    }
    write_all(file.get(), content, temporary);
    flush_file(file.get(), temporary);
    if (!file.close())
      throw Error(concat("cannot write '", temporary.string(), "': ", system_error_text()));
    replace_file(temporary, path);
  } catch (const Error&) {
    ::unlink(temporary.c_str());  // half a file would only take space
    throw;
  }
}

void replace_file(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  // Some file systems rename to free names only.
  if (errno == EEXIST && ::unlink(to.c_str()) == 0 && ::rename(from.c_str(), to.c_str()) == 0)
    return;
  if (errno != EEXIST && !is_missing_rename(errno)) {
    throw Error(concat("cannot rename '", from.string(), "' to '", to.string(),
                       "': ", system_error_text()));
  }
  copy_content(from, to);
  ::unlink(from.c_str());
}

bool rename_folder(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return true;
  if (is_missing_rename(errno)) return false;
  throw Error(
      concat("cannot rename '", from.string(), "' to '", to.string(), "': ", system_error_text()));
}

namespace {

// Returns what stands in the way of a folder, from its first part on, or nothing.
std::string obstacle(const fs::path& path) {
  fs::path part;
  std::error_code ignored;
  for (const fs::path& name : path) {
    part /= name;
    const bool is_link = fs::is_symlink(fs::symlink_status(part, ignored));
    const fs::file_status status = fs::status(part, ignored);
    if (is_link && status.type() == fs::file_type::not_found) {
      return concat("'", part.string(), "' is a link to '",
                    fs::read_symlink(part, ignored).string(), "', which does not exist");
    }
    if (fs::exists(status) && !fs::is_directory(status)) {
      return part == path ? "a file of that name is in the way"
                          : concat("'", part.string(), "' is a file");
    }
  }
  return "";
}

fs::file_type type_of(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (error && type != fs::file_type::not_found) {
    throw DataError(concat("cannot examine '", path.string(), "': ", error.message()));
  }
  return type;
}

}  // namespace

bool path_exists(const fs::path& path) {
  return type_of(path) != fs::file_type::not_found;
}

bool folder_exists(const fs::path& path) {
  return type_of(path) == fs::file_type::directory;
}

std::string dangling_link_text(const fs::path& path) {
  std::error_code error;
  if (fs::symlink_status(path, error).type() != fs::file_type::symlink) return "";
  const fs::path target = fs::read_symlink(path, error);
  if (error || fs::exists(path, error)) return "";
  return concat(": a link to '", target.string(), "', which is not there");
}

fs::path absolute_path(const fs::path& path) {
  std::error_code error;
  fs::path result = fs::absolute(path, error);
  if (error) {
    throw Error(concat("cannot tell where '", path.string(), "' is: ", error.message()),
                "has the present folder been removed?");
  }
  return result;
}

void make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && fs::is_directory(path, error)) return;
  const std::string in_the_way = obstacle(path);
  throw Error(concat("cannot create folder '", path.string(),
                     "': ", in_the_way.empty() ? error.message() : in_the_way));
}

void sync_to_disk(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.valid()) return flush_file(file.get(), path);
  // A folder that may be written but not listed cannot be opened.
  const int error = errno;
  std::error_code ignored;
  if (is_missing_flush(error, /*of_folder=*/true) && fs::is_directory(path, ignored)) return;
  errno = error;
  throw Error(concat("cannot flush '", path.string(), "' to disk: ", system_error_text()));
}

void flush_file(int descriptor, const fs::path& path) {
  if (flushed(descriptor)) return;
  throw Error(concat("cannot flush '", path.string(), "' to disk: ", system_error_text()),
              "is the disk full or the quota used up?");
}

FileLock::FileLock(const fs::path& path)
    : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (fd_ < 0) throw Error(concat("cannot write '", path.string(), "': ", system_error_text()));
  held_ = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
  if (held_ || errno == EWOULDBLOCK) return;
  if (errno != EACCES) {
    held_ = true;
    return;
  }
  // Some network file systems say EACCES of a lock that another host has, some of every lock.
  const fs::path other = temporary_name(path);
  const Descriptor file(::open(other.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  held_ = file.valid() && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EACCES;
  if (file.valid()) ::unlink(other.c_str());
}

FileLock::~FileLock() {
  ::close(fd_);
}

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  AIFS_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1, "SHA-256 unavailable");
}

Sha256::~Sha256() = default;

void Sha256::update(const void* data, size_t bytes) {
  AIFS_CHECK(EVP_DigestUpdate(state_->context, data, bytes) == 1, "SHA-256 failed");
}

std::string Sha256::finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  AIFS_CHECK(EVP_DigestFinal_ex(state_->context, digest, &size) == 1, "SHA-256 failed");
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * size);
  for (unsigned int i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return hash.finish();
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return hash.finish();
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  struct stat info {};
  const Descriptor file = open_for_reading(path, info);
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return;  // an empty file cannot be mapped
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data != MAP_FAILED) {
    bytes_ = {static_cast<const std::byte*>(data), size};
    return;
  }
  if (errno != EACCES && errno != EPERM && !is_missing_operation(errno))
    throw DataError(concat("cannot map '", path.string(), "': ", system_error_text()));
  copy_ = read_file(path);
  bytes_ = std::as_bytes(std::span(copy_));
}

MappedFile::~MappedFile() {
  if (copy_.empty() && !bytes_.empty())
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace aifs
