// SPDX-License-Identifier: Apache-2.0
// LZ4 as numcodecs writes it: the decoded size (u32, little endian), then one raw LZ4 block.
#pragma once

#include "data/zarr/codec.h"

namespace aifs::zarr {

class Lz4Codec : public Codec {
 public:
  const char* name() const override { return "lz4"; }
  void decode(std::span<const std::byte> encoded, const DecodeRequest& request,
              Buffer& decoded) const override;
};

}  // namespace aifs::zarr
