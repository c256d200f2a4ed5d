// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/codec_lz4.h"

#include <lz4.h>

#include <cstdint>
#include <cstring>

#include "core/check.h"

namespace aifs::zarr {

void Lz4Codec::decode(std::span<const std::byte> encoded, const DecodeRequest& request,
                      Buffer& decoded) const {
  uint32_t size = 0;
  if (encoded.size() <= sizeof size) throw_corrupt("shorter than an LZ4 header");
  std::memcpy(&size, encoded.data(), sizeof size);
  if (request.exact ? size != request.size : size > request.size) {
    throw_wrong_size(size, request.size);
  }
  const std::span<const std::byte> block = encoded.subspan(sizeof size);
  if (size > LZ4_MAX_INPUT_SIZE || block.size() > LZ4_MAX_INPUT_SIZE) {
    throw_corrupt("larger than an LZ4 block can be");
  }
  decoded.resize(size);
  const int got =
      LZ4_decompress_safe(static_cast<const char*>(static_cast<const void*>(block.data())),
                          static_cast<char*>(static_cast<void*>(decoded.data())),
                          static_cast<int>(block.size()), static_cast<int>(size));
  if (got < 0 || static_cast<uint32_t>(got) != size) {
    throw_corrupt("its LZ4 block does not decode");
  }
}

}  // namespace aifs::zarr
