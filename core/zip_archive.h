// SPDX-License-Identifier: Apache-2.0
// Members of a zip archive in a file that is mapped (PKWARE APPNOTE 6.3, with zip64): what formats
// such as that of torch.save() are made of. All numbers are checked against the size of the file,
// and contents against their checksums. Names are never used as paths.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/file_io.h"

namespace aifs {

class ZipArchive {
 public:
  // Throws DataError naming the file and what is wrong with it: no zip archive, cut short, several
  // disks, two members of a name, names that leave a folder, members outside the file.
  explicit ZipArchive(const fs::path& path);

  const fs::path& path() const { return file_.path(); }
  // Bytes of the file.
  uint64_t size() const { return file_.bytes().size(); }
  struct Member {
    uint16_t flags = 0, method = 0;  // method 0: stored as it is; 8: deflated
    uint32_t checksum = 0;           // CRC-32 of the content
    uint64_t packed = 0, size = 0;   // bytes
    uint64_t header = 0;             // where its local header begins
  };
  // By name, without folders.
  const std::map<std::string, Member>& members() const { return members_; }
  bool contains(const std::string& name) const { return members_.count(name) != 0; }

  // The content of a member that is stored as it is, in place; valid as long as the archive lives.
  // Throws DataError if it is not there, packed, encrypted, or its checksum is wrong.
  std::span<const std::byte> stored(const std::string& name) const;
  // The content of a member of at most `most` bytes, unpacked.
  std::string read(const std::string& name, uint64_t most) const;

 private:
  const Member& at(const std::string& name) const;
  std::span<const std::byte> packed_bytes(const std::string& name, const Member& member) const;
  [[noreturn]] void fail(const std::string& what) const;

  MappedFile file_;
  std::map<std::string, Member> members_;
};

}  // namespace aifs
