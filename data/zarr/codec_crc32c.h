// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli, RFC 3720 appendix B.4): the payload, then its checksum (u32, little endian).
#pragma once

#include <cstdint>

#include "data/zarr/codec.h"

namespace aifs::zarr {

uint32_t crc32c(std::span<const std::byte> bytes);

class Crc32cCodec : public Codec {
 public:
  const char* name() const override { return "crc32c"; }
  void decode(std::span<const std::byte> encoded, const DecodeRequest& request,
              Buffer& decoded) const override;
};

}  // namespace aifs::zarr
