// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/codec_zstd.h"

#include <zstd.h>
#include <zstd_errors.h>

#include "core/check.h"

namespace aifs::zarr {

namespace {

[[noreturn]] void throw_fault(ZSTD_ErrorCode code, size_t most) {
  switch (code) {
    case ZSTD_error_srcSize_wrong:
      throw_corrupt("the Zstandard frame ends too early");
    case ZSTD_error_checksum_wrong:
      throw_corrupt("the checksum of the Zstandard frame does not match");
    case ZSTD_error_dictionary_wrong:
      throw DataError("the Zstandard frame needs a dictionary, which is not supported");
    case ZSTD_error_dstSize_tooSmall:
      throw DataError(concat("decodes to more than ", most,
                             " bytes: sizes do not agree with the chunk shape and dtype"));
    default:
      throw_corrupt("the Zstandard frame is damaged");
  }
}

}  // namespace

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
  if (ZSTD_isError(got)) throw_fault(ZSTD_getErrorCode(got), decoded.size());
  if (got != decoded.size() && (is_known || request.exact)) throw_wrong_size(got, decoded.size());
  decoded.resize(got);
}

}  // namespace aifs::zarr
