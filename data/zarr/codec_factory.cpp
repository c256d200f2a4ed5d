// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/codec_factory.h"

#include "core/check.h"
#include "data/zarr/codec_blosc.h"
#include "data/zarr/codec_crc32c.h"
#include "data/zarr/codec_lz4.h"
#include "data/zarr/codec_zlib.h"
#include "data/zarr/codec_zstd.h"
#include "data/zarr/json_text.h"

namespace aifs::zarr {

std::shared_ptr<const Codec> make_codec_v2(const std::string& id) {
  if (id == "blosc") return std::make_shared<BloscCodec>();
  if (id == "zstd") return std::make_shared<ZstdCodec>();
  if (id == "zlib") return std::make_shared<DeflateCodec>(DeflateWrapping::kZlib);
  if (id == "gzip") return std::make_shared<DeflateCodec>(DeflateWrapping::kGzip);
  if (id == "lz4") return std::make_shared<Lz4Codec>();
  throw DataError(concat("codec ", quoted(id), " (compressor) is not supported"),
                  "blosc, zstd, zlib, gzip, lz4 and null are");
}

std::shared_ptr<const Codec> make_codec_v3(const std::string& name) {
  if (name == "blosc") return std::make_shared<BloscCodec>();
  if (name == "zstd") return std::make_shared<ZstdCodec>();
  if (name == "gzip") return std::make_shared<DeflateCodec>(DeflateWrapping::kGzip);
  if (name == "crc32c") return std::make_shared<Crc32cCodec>();
  throw DataError(concat("codec ", quoted(name), " is not supported"),
                  "bytes, transpose, sharding_indexed, blosc, zstd, gzip and crc32c are");
}

}  // namespace aifs::zarr
