// SPDX-License-Identifier: Apache-2.0
// Deflate streams in their two wrappings: zlib (RFC 1950) and gzip (RFC 1952).
#pragma once

#include "data/zarr/codec.h"

namespace aifs::zarr {

enum class DeflateWrapping { kZlib, kGzip };

class DeflateCodec : public Codec {
 public:
  explicit DeflateCodec(DeflateWrapping wrapping) : wrapping_(wrapping) {}
  const char* name() const override {
    return wrapping_ == DeflateWrapping::kZlib ? "zlib" : "gzip";
  }
  // Throws DataError also if something follows the stream.
  void decode(std::span<const std::byte> encoded, const DecodeRequest& request,
              Buffer& decoded) const override;

 private:
  DeflateWrapping wrapping_;
};

}  // namespace aifs::zarr
