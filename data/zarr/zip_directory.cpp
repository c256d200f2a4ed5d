// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/zip_directory.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/check.h"

namespace aifs::zarr {

namespace {

constexpr uint32_t kEndRecord = 0x06054b50, kEnd64Record = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint32_t kEntryRecord = 0x02014b50, kLocalRecord = 0x04034b50;
constexpr size_t kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20, kEntrySize = 46;
constexpr size_t kLocalSize = 30, kMostComment = 65535;
constexpr uint16_t kIn16Bits = 0xffff, kStored = 0, kDeflated = 8, kEncrypted = 1;
constexpr uint32_t kIn32Bits = 0xffffffff;

class Bytes {
 public:
  Bytes(const ValueFile& file, uint64_t begin, uint64_t size, const std::string& name)
      : name_(name), bytes_(static_cast<size_t>(size)) {
    if (begin > file.size() || size > file.size() - begin) fail("is cut short");
    file.read(static_cast<size_t>(begin), bytes_.size(), bytes_.data());
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(concat("'", name_, "' ", what), "copy the zip file again, or pack it again");
  }
  template <class T>  // little-endian, as the machines this runs on
  T number(size_t at) const {
    T value;
    if (at > bytes_.size() || sizeof value > bytes_.size() - at) fail("has a damaged directory");
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  std::string text(size_t at, size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) fail("has a damaged directory");
    return {reinterpret_cast<const char*>(bytes_.data() + at), size};
  }
  size_t size() const { return bytes_.size(); }

 private:
  const std::string& name_;
  std::vector<std::byte> bytes_;
};

// Says where the directory lies.
struct Place {
  uint64_t begin = 0, size = 0, entries = 0;
};

Place place_in_64_bits(const ValueFile& file, uint64_t locator_at, const std::string& name) {
  const Bytes locator(file, locator_at, kLocatorSize, name);
  if (locator.number<uint32_t>(0) != kLocator64) locator.fail("has no zip64 directory");
  const Bytes end(file, locator.number<uint64_t>(8), kEnd64Size, name);
  if (end.number<uint32_t>(0) != kEnd64Record) end.fail("has no zip64 directory");
  if (end.number<uint32_t>(16) != 0 || end.number<uint32_t>(20) != 0)
    end.fail("is part of an archive of several disks, which cannot be read");
  return {end.number<uint64_t>(48), end.number<uint64_t>(40), end.number<uint64_t>(32)};
}

Place find_directory(const ValueFile& file, const std::string& name) {
  const uint64_t tail_size = std::min<uint64_t>(file.size(), kEndSize + kMostComment);
  const uint64_t tail_begin = file.size() - tail_size;
  const Bytes tail(file, tail_begin, tail_size, name);
  for (size_t back = kEndSize; back <= tail.size(); ++back) {
    const size_t at = tail.size() - back;
    if (tail.number<uint32_t>(at) != kEndRecord) continue;
    if (tail.number<uint16_t>(at + 20) != back - kEndSize) continue;  // part of a comment
    const Place place{tail.number<uint32_t>(at + 16), tail.number<uint32_t>(at + 12),
                      tail.number<uint16_t>(at + 10)};
    const uint64_t end_at = tail_begin + at;
    const bool is_64 =
        place.begin == kIn32Bits || place.size == kIn32Bits || place.entries == kIn16Bits;
    if (is_64 && end_at >= kLocatorSize) return place_in_64_bits(file, end_at - kLocatorSize, name);
    if (tail.number<uint16_t>(at + 4) != 0 || tail.number<uint16_t>(at + 6) != 0)
      tail.fail("is part of an archive of several disks, which cannot be read");
    return place;
  }
  tail.fail("is no zip file, or cut short: its directory is not at the end");
}

// Numbers of 64 bits, which stand in an extra field in the order of those that need them.
void read_extra(const Bytes& directory, size_t at, size_t size, ZipMember& member) {
  uint64_t* const numbers[] = {&member.size, &member.packed, &member.header};
  for (size_t end = at + size; at + 4 <= end;) {
    const auto id = directory.number<uint16_t>(at), length = directory.number<uint16_t>(at + 2);
    at += 4;
    if (length > end - at) directory.fail("has a damaged directory");
    if (id == 1) {
      size_t next = at;
      for (uint64_t* number : numbers) {
        if (*number != kIn32Bits) continue;
        if (next + 8 > at + length) directory.fail("has a damaged directory");
        *number = directory.number<uint64_t>(next);
        next += 8;
      }
      return;
    }
    at += length;
  }
}

void check_member(const Bytes& directory, const std::string& name, uint16_t flags, uint16_t method,
                  const ZipMember& member, uint64_t directory_begin) {
  constexpr uint64_t kMostRatio = 1032;  // of deflate
  const auto refuse = [&](const std::string& what) {
    directory.fail(concat("cannot be read: its member '", name, "' ", what));
  };
  if (flags & kEncrypted) refuse("is encrypted");
  if (method != kStored && method != kDeflated)
    refuse(concat("is packed by method ", method, "; stored and deflated ones can be read"));
  if (member.header > directory_begin || directory_begin - member.header < kLocalSize ||
      member.packed > directory_begin - member.header - kLocalSize) {
    refuse("does not lie within the file");
  }
  if (!member.is_deflated && member.packed != member.size)
    refuse(concat("is stored in ", member.packed, " bytes and has ", member.size));
  if (member.is_deflated && member.size / kMostRatio > member.packed + 1)
    refuse(concat("claims to have ", member.size, " bytes, packed into ", member.packed));
}

}  // namespace

std::map<std::string, ZipMember> read_zip_directory(const ValueFile& file,
                                                    const std::string& name) {
  const Place place = find_directory(file, name);
  const Bytes directory(file, place.begin, std::min<uint64_t>(place.size, file.size()), name);
  if (place.size != directory.size() || place.entries > directory.size() / kEntrySize)
    directory.fail("has a damaged directory: it is said to be longer than the file");
  std::map<std::string, ZipMember> members;
  size_t at = 0;
  for (uint64_t i = 0; i < place.entries; ++i) {
    if (directory.number<uint32_t>(at) != kEntryRecord) directory.fail("has a damaged directory");
    const auto flags = directory.number<uint16_t>(at + 8);
    const auto method = directory.number<uint16_t>(at + 10);
    ZipMember member{.is_deflated = method == kDeflated,
                     .checksum = directory.number<uint32_t>(at + 16),
                     .packed = directory.number<uint32_t>(at + 20),
                     .size = directory.number<uint32_t>(at + 24),
                     .header = directory.number<uint32_t>(at + 42)};
    const size_t name_size = directory.number<uint16_t>(at + 28),
                 extra_size = directory.number<uint16_t>(at + 30),
                 comment_size = directory.number<uint16_t>(at + 32);
    const std::string member_name = directory.text(at + kEntrySize, name_size);
    read_extra(directory, at + kEntrySize + name_size, extra_size, member);
    at += kEntrySize + name_size + extra_size + comment_size;
    if (member_name.ends_with('/')) continue;  // a folder
    check_member(directory, member_name, flags, method, member, place.begin);
    if (!members.emplace(member_name, member).second)
      directory.fail(concat("has two members called '", member_name, "'"));
  }
  return members;
}

uint64_t zip_data_offset(const ValueFile& file, const std::string& name, const std::string& member,
                         const ZipMember& entry) {
  const Bytes local(file, entry.header, kLocalSize, name);
  const size_t name_size = local.number<uint16_t>(26), extra_size = local.number<uint16_t>(28);
  const uint64_t begin = entry.header + kLocalSize + name_size + extra_size;
  const auto refuse = [&] {
    local.fail(concat("is damaged: the member '", member, "' is not where the directory says"));
  };
  if (local.number<uint32_t>(0) != kLocalRecord || name_size != member.size()) refuse();
  const Bytes own_name(file, entry.header + kLocalSize, name_size, name);
  if (own_name.text(0, name_size) != member) refuse();
  if (begin > file.size() || entry.packed > file.size() - begin) refuse();
  return begin;
}

}  // namespace aifs::zarr
