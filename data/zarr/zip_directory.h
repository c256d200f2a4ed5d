// SPDX-License-Identifier: Apache-2.0
// The list of members of a zip file (PKWARE APPNOTE 6.3, with zip64). Everything in it is checked
// against the size of the file, and nothing is believed that a member says of itself later.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "data/zarr/store.h"

namespace aifs::zarr {

struct ZipMember {
  bool is_deflated = false;  // else stored as it is
  uint32_t checksum = 0;     // CRC-32 of the value
  uint64_t packed = 0, size = 0;
  uint64_t header = 0;  // where its local header begins
};

// Members by name, without folders. Throws DataError naming the file and what is wrong with it:
// no zip file, cut short, several disks, encrypted, packed in another way, named twice, places
// outside the file.
std::map<std::string, ZipMember> read_zip_directory(const ValueFile& file, const std::string& name);

// Returns where the bytes of a member begin. Throws DataError unless its local header agrees with
// the list.
uint64_t zip_data_offset(const ValueFile& file, const std::string& name, const std::string& member,
                         const ZipMember& entry);

}  // namespace aifs::zarr
