// SPDX-License-Identifier: Apache-2.0
// Writes zip files for tests: stored or deflated members, with or without the records of zip64.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>

#include "core/check.h"

namespace aifs::test {

struct ZipStyle {
  bool deflated = false;
  bool zip64 = false;
  std::string comment = {};
};

inline std::string deflate_raw(const std::string& value) {
  z_stream stream{};
  AIFS_CHECK(::deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK, "");
  std::string packed(::deflateBound(&stream, value.size()), '\0');
  std::string copy = value;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  AIFS_CHECK(::deflate(&stream, Z_FINISH) == Z_STREAM_END, "");
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

// The bytes of numbers, little-endian.
class ByteWriter {
 public:
  template <class T>
  ByteWriter& add(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  ByteWriter& text(const std::string& text) {
    bytes_ += text;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

inline std::string zip_bytes(const std::map<std::string, std::string>& members,
                             const ZipStyle& style = {}) {
  std::string file;
  ByteWriter directory;
  constexpr uint32_t kBeyond = 0xffffffff;
  for (const auto& [name, value] : members) {
    const std::string packed = style.deflated ? deflate_raw(value) : value;
    const auto checksum = static_cast<uint32_t>(
        ::crc32_z(0, reinterpret_cast<const Bytef*>(value.data()), value.size()));
    const auto at = static_cast<uint64_t>(file.size());
    const uint16_t method = style.deflated ? 8 : 0;
    const auto short_size = [&](uint64_t size) {
      return style.zip64 ? kBeyond : static_cast<uint32_t>(size);
    };
    ByteWriter extra;
    if (style.zip64) {
      extra.add<uint16_t>(1).add<uint16_t>(24);
      extra.add<uint64_t>(value.size()).add<uint64_t>(packed.size()).add<uint64_t>(at);
    }
    ByteWriter local;
    local.add<uint32_t>(0x04034b50).add<uint16_t>(20).add<uint16_t>(0).add<uint16_t>(method);
    local.add<uint32_t>(0).add<uint32_t>(checksum);
    local.add<uint32_t>(static_cast<uint32_t>(packed.size()));
    local.add<uint32_t>(static_cast<uint32_t>(value.size()));
    local.add<uint16_t>(static_cast<uint16_t>(name.size())).add<uint16_t>(0).text(name);
    file += local.bytes() + packed;
    directory.add<uint32_t>(0x02014b50).add<uint16_t>(20).add<uint16_t>(20).add<uint16_t>(0);
    directory.add<uint16_t>(method).add<uint32_t>(0).add<uint32_t>(checksum);
    directory.add<uint32_t>(short_size(packed.size())).add<uint32_t>(short_size(value.size()));
    directory.add<uint16_t>(static_cast<uint16_t>(name.size()));
    directory.add<uint16_t>(static_cast<uint16_t>(extra.bytes().size())).add<uint16_t>(0);
    directory.add<uint16_t>(0).add<uint16_t>(0).add<uint32_t>(0).add<uint32_t>(short_size(at));
    directory.text(name).text(extra.bytes());
  }
  const auto begin = static_cast<uint64_t>(file.size());
  const auto size = static_cast<uint64_t>(directory.bytes().size());
  file += directory.bytes();
  ByteWriter end;
  if (style.zip64) {
    const auto end64 = static_cast<uint64_t>(file.size());
    end.add<uint32_t>(0x06064b50).add<uint64_t>(44).add<uint16_t>(45).add<uint16_t>(45);
    end.add<uint32_t>(0).add<uint32_t>(0).add<uint64_t>(members.size());
    end.add<uint64_t>(members.size()).add<uint64_t>(size).add<uint64_t>(begin);
    end.add<uint32_t>(0x07064b50).add<uint32_t>(0).add<uint64_t>(end64).add<uint32_t>(1);
  }
  const auto count = static_cast<uint16_t>(style.zip64 ? 0xffff : members.size());
  end.add<uint32_t>(0x06054b50).add<uint16_t>(0).add<uint16_t>(0).add<uint16_t>(count);
  end.add<uint16_t>(count).add<uint32_t>(style.zip64 ? kBeyond : static_cast<uint32_t>(size));
  end.add<uint32_t>(style.zip64 ? kBeyond : static_cast<uint32_t>(begin));
  end.add<uint16_t>(static_cast<uint16_t>(style.comment.size())).text(style.comment);
  return file + end.bytes();
}

}  // namespace aifs::test
