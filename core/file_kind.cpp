// SPDX-License-Identifier: Apache-2.0
#include "core/file_kind.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace aifs {

namespace {

constexpr size_t kHeadBytes = 512;  // a tar header

struct Signature {
  size_t offset;
  std::string_view bytes;
  const char* kind;
};

using namespace std::string_view_literals;

constexpr std::array<Signature, 17> kSignatures{{
    {0, "PK\x03\x04"sv, "a zip archive"},
    {0, "PK\x05\x06"sv, "an empty zip archive"},
    {257, "ustar"sv, "a tar archive"},
    {0, "\x1f\x8b"sv, "a gzip file"},
    {0, "BZh"sv, "a bzip2 file"},
    {0, "\xfd\x37zXZ\x00"sv, "an xz file"},
    {0, "\x28\xb5\x2f\xfd"sv, "a Zstandard file"},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive"},
    {0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 or netCDF-4 file"},
    {0, "CDF\x01"sv, "a netCDF-3 file"},
    {0, "CDF\x02"sv, "a netCDF-3 file"},
    {0, "CDF\x05"sv, "a netCDF-3 file"},
    {0, "GRIB"sv, "a GRIB file"},
    {0, "\x93NUMPY"sv, "a NumPy array"},
    {0, "\x80\x02"sv, "a Python pickle"},
    {0, "\x80\x04"sv, "a Python pickle"},
    {0, "\x7f\x45LF"sv, "a program"},
}};

// Closes itself.
struct Opened {
  int fd;
  explicit Opened(const fs::path& path)
      : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Opened() {
    if (fd >= 0) ::close(fd);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
};

// Eight bytes of length, then a JSON object.
bool is_safetensors(std::string_view head, uint64_t size) {
  uint64_t header_bytes = 0;
  if (head.size() < sizeof header_bytes + 2) return false;
  std::memcpy(&header_bytes, head.data(), sizeof header_bytes);
  return header_bytes <= size - sizeof header_bytes && head.substr(8).starts_with("{\"");
}

bool is_text(std::string_view head) {
  return std::all_of(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7f : byte == '\n' || byte == '\r' || byte == '\t';
  });
}

}  // namespace

std::string describe_kind_of_file(const fs::path& path) {
  const Opened file(path);
  struct stat info {};
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0) return "";
  if (S_ISDIR(info.st_mode)) return "a folder";
  if (!S_ISREG(info.st_mode)) return "a device, pipe or socket";
  if (info.st_size == 0) return "an empty file";
  std::array<char, kHeadBytes> bytes{};
  const ssize_t got = ::read(file.fd, bytes.data(), bytes.size());
  if (got <= 0) return "";
  const std::string_view head(bytes.data(), static_cast<size_t>(got));
  for (const Signature& signature : kSignatures) {
    if (head.size() >= signature.offset &&
        head.substr(signature.offset).starts_with(signature.bytes)) {
      return signature.kind;
    }
  }
  if (is_safetensors(head, static_cast<uint64_t>(info.st_size))) return "a safetensors file";
  if (!is_text(head)) return "a file of another kind";
  const size_t first = head.find_first_not_of(" \t\r\n");
  const bool is_json =
      first != std::string_view::npos && (head[first] == '{' || head[first] == '[');
  return is_json ? "JSON" : "text";
}

}  // namespace aifs
