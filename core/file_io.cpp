// SPDX-License-Identifier: Apache-2.0
#include "core/file_io.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/check.h"

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

}  // namespace

std::string system_error_text() {
  return std::strerror(errno);
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

void write_file_atomic(const fs::path& path, std::string_view content) {
  const fs::path temporary = path.string() + concat(".tmp", ::getpid());
  try {
    Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file.valid()) {
      throw Error(concat("cannot create '", temporary.string(), "': ", system_error_text()));
    }
    write_all(file.get(), content, temporary);
    if (::fsync(file.get()) != 0 || !file.close()) {
      throw Error(concat("cannot flush '", temporary.string(), "': ", system_error_text()));
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      throw Error(concat("cannot rename '", temporary.string(), "' to '", path.string(),
                         "': ", system_error_text()));
    }
  } catch (const Error&) {
    ::unlink(temporary.c_str());  // half a file would only take space
    throw;
  }
}

namespace {

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
  if (!error) return;
  std::error_code ignored;
  const bool file_in_the_way = fs::exists(path, ignored) && !fs::is_directory(path, ignored);
  throw Error(concat("cannot create folder '", path.string(), "': ",
                     file_in_the_way ? "a file of that name is in the way" : error.message()));
}

void sync_to_disk(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() || ::fsync(file.get()) != 0) {
    throw Error(concat("cannot flush '", path.string(), "' to disk: ", system_error_text()));
  }
}

FileLock::FileLock(const fs::path& path)
    : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (fd_ < 0) throw Error(concat("cannot write '", path.string(), "': ", system_error_text()));
  held_ = ::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
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
  if (data == MAP_FAILED) {
    throw DataError(concat("cannot map '", path.string(), "': ", system_error_text()));
  }
  bytes_ = {static_cast<const std::byte*>(data), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace aifs
