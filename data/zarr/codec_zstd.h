// SPDX-License-Identifier: Apache-2.0
// Zstandard frames (RFC 8878). The frame may or may not say how much it holds.
#pragma once

#include "data/zarr/codec.h"

namespace aifs::zarr {

class ZstdCodec : public Codec {
 public:
  const char* name() const override { return "zstd"; }
  void decode(std::span<const std::byte> encoded, const DecodeRequest& request,
              Buffer& decoded) const override;
};

}  // namespace aifs::zarr
