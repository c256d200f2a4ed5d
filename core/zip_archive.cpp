// SPDX-License-Identifier: Apache-2.0
#include "core/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/check.h"
#include "core/file_kind.h"

namespace aifs {

namespace {

// Records of an archive: a fixed part, then names and extras of given lengths.
constexpr uint32_t kZipEnd = 0x06054b50, kZipEnd64 = 0x06064b50, kZipLocator64 = 0x07064b50;
constexpr uint32_t kZipEntry = 0x02014b50, kZipLocal = 0x04034b50;
constexpr size_t kZipEndSize = 22, kZipEnd64Size = 56, kZipLocatorSize = 20, kZipEntrySize = 46;
constexpr size_t kZipLocalSize = 30, kMostZipComment = 65535;
constexpr uint16_t kZipStored = 0, kZipDeflated = 8, kZipEncrypted = 1, kZipIn64Bits = 0xffff;
constexpr uint32_t kZipIn32Bits = 0xffffffff;

// A part of a file, whose numbers are little-endian, as the machines this runs on.
class ZipBytes {
 public:
  ZipBytes(std::span<const std::byte> bytes, const fs::path& path) : bytes_(bytes), path_(path) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(concat("'", path_.string(), "' ", what), "copy the file again");
  }
  std::span<const std::byte> part(uint64_t begin, uint64_t size) const {
    if (begin > bytes_.size() || size > bytes_.size() - begin) fail("is cut short or damaged");
    return bytes_.subspan(begin, size);
  }
  template <class T>
  T number(uint64_t at) const {
    T value;
    std::memcpy(&value, part(at, sizeof value).data(), sizeof value);
    return value;
  }
  std::string text(uint64_t at, uint64_t size) const {
    return {reinterpret_cast<const char*>(part(at, size).data()), static_cast<size_t>(size)};
  }
  uint64_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  const fs::path& path_;
};

// Says where the list of members lies.
struct ZipDirectory {
  uint64_t begin = 0, size = 0, entries = 0;
};

ZipDirectory directory_in_64_bits(const ZipBytes& file, uint64_t locator_at) {
  if (file.number<uint32_t>(locator_at) != kZipLocator64) file.fail("has no zip64 directory");
  const auto at = file.number<uint64_t>(locator_at + 8);
  file.part(at, kZipEnd64Size);
  if (file.number<uint32_t>(at) != kZipEnd64) file.fail("has no zip64 directory");
  if (file.number<uint32_t>(at + 16) != 0 || file.number<uint32_t>(at + 20) != 0)
    file.fail("is part of an archive of several disks, which cannot be read");
  return {file.number<uint64_t>(at + 48), file.number<uint64_t>(at + 40),
          file.number<uint64_t>(at + 32)};
}

ZipDirectory zip_directory(const ZipBytes& file) {
  const uint64_t most = std::min<uint64_t>(file.size(), kZipEndSize + kMostZipComment);
  for (uint64_t back = kZipEndSize; back <= most; ++back) {
    const uint64_t at = file.size() - back;
    if (file.number<uint32_t>(at) != kZipEnd) continue;
    if (file.number<uint16_t>(at + 20) != back - kZipEndSize) continue;  // part of a comment
    const ZipDirectory found{file.number<uint32_t>(at + 16), file.number<uint32_t>(at + 12),
                             file.number<uint16_t>(at + 10)};
    const bool is_64 =
        found.begin == kZipIn32Bits || found.size == kZipIn32Bits || found.entries == kZipIn64Bits;
    if (is_64 && at >= kZipLocatorSize) return directory_in_64_bits(file, at - kZipLocatorSize);
    if (file.number<uint16_t>(at + 4) != 0 || file.number<uint16_t>(at + 6) != 0)
      file.fail("is part of an archive of several disks, which cannot be read");
    return found;
  }
  file.fail("is no zip archive, or cut short: its directory is not at the end");
}

// Numbers of 64 bits, which stand in an extra field in the order of those that need them.
void read_zip64_extra(const ZipBytes& directory, uint64_t at, size_t size,
                      ZipArchive::Member& member) {
  uint64_t* const numbers[] = {&member.size, &member.packed, &member.header};
  for (const uint64_t end = at + size; at + 4 <= end;) {
    const auto id = directory.number<uint16_t>(at), length = directory.number<uint16_t>(at + 2);
    at += 4;
    if (length > end - at) directory.fail("has a damaged directory");
    if (id != 1) {
      at += length;
      continue;
    }
    uint64_t next = at;
    for (uint64_t* number : numbers) {
      if (*number != kZipIn32Bits) continue;
      if (next + 8 > at + length) directory.fail("has a damaged directory");
      *number = directory.number<uint64_t>(next);
      next += 8;
    }
    return;
  }
}

// True for names that would leave a folder if they were paths.
bool leaves_folder(const std::string& name) {
  return name.starts_with('/') || name == ".." || name.starts_with("../") ||
         name.ends_with("/..") || name.find("/../") != std::string::npos ||
         name.find('\0') != std::string::npos;
}

}  // namespace

ZipArchive::ZipArchive(const fs::path& path) : file_(path) {
  const std::string kind = describe_kind_of_file(path);
  if (kind.find("zip archive") == std::string::npos && kind != "a file of another kind" &&
      !kind.empty())
    fail(concat("is ", kind, ", and no zip archive"));
  const ZipBytes file(file_.bytes(), this->path());
  const ZipDirectory place = zip_directory(file);
  const ZipBytes directory(file.part(place.begin, place.size), this->path());
  if (place.entries > directory.size() / kZipEntrySize)
    fail("has a damaged directory: it is said to be longer than the file");
  uint64_t at = 0;
  for (uint64_t i = 0; i < place.entries; ++i) {
    if (directory.number<uint32_t>(at) != kZipEntry) fail("has a damaged directory");
    Member member{.flags = directory.number<uint16_t>(at + 8),
                  .method = directory.number<uint16_t>(at + 10),
                  .checksum = directory.number<uint32_t>(at + 16),
                  .packed = directory.number<uint32_t>(at + 20),
                  .size = directory.number<uint32_t>(at + 24),
                  .header = directory.number<uint32_t>(at + 42)};
    const size_t name_size = directory.number<uint16_t>(at + 28),
                 extra_size = directory.number<uint16_t>(at + 30),
                 comment_size = directory.number<uint16_t>(at + 32);
    const std::string name = directory.text(at + kZipEntrySize, name_size);
    read_zip64_extra(directory, at + kZipEntrySize + name_size, extra_size, member);
    at += kZipEntrySize + name_size + extra_size + comment_size;
    if (leaves_folder(name)) fail(concat("has a member called '", name, "'"));
    if (name.ends_with('/')) continue;
    if (!members_.emplace(name, member).second) fail(concat("has two members called '", name, "'"));
  }
}

void ZipArchive::fail(const std::string& what) const {
  ZipBytes(file_.bytes(), path()).fail(what);
}

const ZipArchive::Member& ZipArchive::at(const std::string& name) const {
  const auto found = members_.find(name);
  if (found == members_.end()) fail(concat("has no member '", name, "'"));
  return found->second;
}

std::span<const std::byte> ZipArchive::packed_bytes(const std::string& name,
                                                    const Member& member) const {
  if (member.flags & kZipEncrypted) fail(concat("cannot be read: '", name, "' is encrypted"));
  const ZipBytes file(file_.bytes(), path());
  file.part(member.header, kZipLocalSize);
  const size_t name_size = file.number<uint16_t>(member.header + 26),
               extra_size = file.number<uint16_t>(member.header + 28);
  if (file.number<uint32_t>(member.header) != kZipLocal ||
      file.text(member.header + kZipLocalSize, name_size) != name)
    fail(concat("is damaged: '", name, "' is not where the directory says"));
  return file.part(member.header + kZipLocalSize + name_size + extra_size, member.packed);
}

std::span<const std::byte> ZipArchive::stored(const std::string& name) const {
  const Member& member = at(name);
  if (member.method != kZipStored || member.packed != member.size)
    fail(concat("cannot be read: '", name, "' is packed"));
  const std::span<const std::byte> bytes = packed_bytes(name, member);
  const auto found = ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (found != member.checksum) fail(concat("is damaged: the checksum of '", name, "' is wrong"));
  return bytes;
}

std::string ZipArchive::read(const std::string& name, uint64_t most) const {
  const Member& member = at(name);
  if (member.size > most)
    fail(concat("has ", member.size, " bytes in '", name, "', at most ", most, " are read"));
  if (member.method == kZipStored) {
    const std::span<const std::byte> bytes = stored(name);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  if (member.method != kZipDeflated)
    fail(concat("cannot be read: '", name, "' is packed by method ", member.method));
  const std::span<const std::byte> packed = packed_bytes(name, member);
  std::string content(member.size, '\0');
  z_stream stream{};
  AIFS_CHECK(::inflateInit2(&stream, -MAX_WBITS) == Z_OK, "zlib refuses to start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.avail_in = static_cast<uInt>(std::min<uint64_t>(packed.size(), kZipIn32Bits));
  stream.next_out = reinterpret_cast<Bytef*>(content.data());
  stream.avail_out = static_cast<uInt>(std::min<uint64_t>(content.size(), kZipIn32Bits));
  const bool whole =
      ::inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.total_out == member.size;
  ::inflateEnd(&stream);
  const auto found = ::crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
  if (!whole || found != member.checksum) fail(concat("is damaged: '", name, "' does not unpack"));
  return content;
}

}  // namespace aifs
