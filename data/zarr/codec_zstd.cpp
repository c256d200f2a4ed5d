// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/codec_zstd.h"

#include <zstd.h>

#include "core/check.h"

namespace aifs::zarr {

void ZstdCodec::decode(std::span<const std::byte> encoded, const DecodeRequest& request,
                       Buffer& decoded) const {
  const unsigned long long promised = ZSTD_getFrameContentSize(encoded.data(), encoded.size());
  if (promised == ZSTD_CONTENTSIZE_ERROR) throw_corrupt("not a Zstandard frame");
  const bool is_known = promised != ZSTD_CONTENTSIZE_UNKNOWN;
  if (is_known && (promised > request.size || (request.exact && promised != request.size))) {
    throw_wrong_size(promised, request.size);
  }
  decoded.resize(is_known ? promised : request.size);
  const size_t got =
      ZSTD_decompress(decoded.data(), decoded.size(), encoded.data(), encoded.size());
  if (ZSTD_isError(got)) throw_corrupt(concat("Zstandard: ", ZSTD_getErrorName(got)));
  if (got != decoded.size() && (is_known || request.exact)) throw_wrong_size(got, decoded.size());
  decoded.resize(got);
}

}  // namespace aifs::zarr
