// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/codec_blosc.h"

#include <blosc.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/check.h"

namespace aifs::zarr {

namespace {

static_assert(kBloscHeaderBytes == BLOSC_MIN_HEADER_LENGTH);
constexpr int kInnerCodecShift = 5;  // the upper bits of the flags
// Decoding single blocks copies every block once more; below this share it still pays.
constexpr double kPartialShare = 0.75;

uint32_t u32_at(std::span<const std::byte> bytes, size_t offset) {
  uint32_t value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Asks c-blosc, and checks the table of blocks, which c-blosc believes.
void check_body(const BloscHeader& header, std::span<const std::byte> encoded) {
  size_t validated_bytes = 0;
  if (blosc_cbuffer_validate(encoded.data(), encoded.size(), &validated_bytes) != 0 ||
      validated_bytes != header.decoded_bytes) {
    throw_corrupt("its Blosc header contradicts itself");
  }
  if (header.copied) return;
  const size_t table_end = kBloscHeaderBytes + 4 * header.num_blocks();
  if (table_end > encoded.size()) throw_corrupt("the table of Blosc blocks does not fit in");
  for (size_t block = 0; block < header.num_blocks(); ++block) {
    const size_t start = u32_at(encoded, kBloscHeaderBytes + 4 * block);
    if (start < table_end || start >= encoded.size()) {
      throw DataError(concat("damaged Blosc buffer: block ", block, " of ", header.num_blocks(),
                             " has an offset outside the buffer (", start, " of ", encoded.size(),
                             " bytes)"));
    }
  }
}

// The ranges as whole items, those that share a block joined: each block is decoded once.
std::vector<ByteRange> by_blocks(std::span<const ByteRange> needed, const BloscHeader& header) {
  const size_t item = header.type_bytes;
  std::vector<ByteRange> joined;
  for (const ByteRange& range : needed) {
    if (range.begin >= range.end) continue;
    const size_t begin = range.begin / item * item;
    const size_t end = std::min((range.end + item - 1) / item * item, header.decoded_bytes);
    if (!joined.empty() &&
        begin / header.block_bytes <= (joined.back().end - 1) / header.block_bytes) {
      joined.back().end = std::max(joined.back().end, end);
    } else {
      joined.push_back({begin, end});
    }
  }
  return joined;
}

size_t count_blocks(const std::vector<ByteRange>& ranges, const BloscHeader& header) {
  size_t blocks = 0;
  for (const ByteRange& range : ranges)
    blocks += (range.end - 1) / header.block_bytes - range.begin / header.block_bytes + 1;
  return blocks;
}

// Decodes the needed blocks; false if decoding everything is simpler or as fast.
bool decode_part(std::span<const std::byte> encoded, std::span<const ByteRange> needed,
                 const BloscHeader& header, Buffer& decoded) {
  const size_t item = header.type_bytes;
  if (needed.empty() || header.block_bytes % item != 0 || header.decoded_bytes % item != 0) {
    return false;
  }
  const std::vector<ByteRange> ranges = by_blocks(needed, header);
  if (static_cast<double>(count_blocks(ranges, header)) >
      kPartialShare * static_cast<double>(header.num_blocks())) {
    return false;
  }
  for (const ByteRange& range : ranges) {
    const size_t bytes = range.end - range.begin;
    const int got = blosc_getitem(encoded.data(), static_cast<int>(range.begin / item),
                                  static_cast<int>(bytes / item), decoded.data() + range.begin);
    if (got < 0 || static_cast<size_t>(got) != bytes) {
      throw_corrupt(concat("Blosc blocks with the bytes ", range.begin, " to ", range.end,
                           " do not decode (inner codec ", inner_codec_name(header.inner_codec),
                           ")"));
    }
  }
  return true;
}

}  // namespace

std::string inner_codec_name(int inner_codec) {
  constexpr std::array<const char*, 5> kNames{"blosclz", "lz4", "snappy", "zlib", "zstd"};
  if (inner_codec < 0 || static_cast<size_t>(inner_codec) >= kNames.size()) {
    throw DataError(concat("its inner codec, number ", inner_codec, " of Blosc, is unknown"),
                    "blosclz, lz4, snappy, zlib and zstd are the numbers 0 to 4");
  }
  const std::string name = kNames[static_cast<size_t>(inner_codec)];
  const std::string built = concat(",", blosc_list_compressors(), ",");
  if (built.find(concat(",", name, ",")) == std::string::npos) {
    throw DataError(concat("its inner codec '", name, "' of Blosc is not supported"),
                    concat(blosc_list_compressors(), " are: write the dataset again with one"));
  }
  return name;
}

BloscHeader read_blosc_header(std::span<const std::byte> encoded, const DecodeRequest* request) {
  return read_blosc_header(encoded, encoded.size(), request);
}

BloscHeader read_blosc_header(std::span<const std::byte> encoded, size_t size,
                              const DecodeRequest* request) {
  if (size < kBloscHeaderBytes) {
    throw DataError(
        concat("shorter than a Blosc header: ", size, " of ", kBloscHeaderBytes, " bytes"));
  }
  const int version = std::to_integer<int>(encoded[0]);
  if (version != BLOSC_VERSION_FORMAT) {
    throw DataError(concat("not a Blosc buffer: its format version is ", version, ", not ",
                           BLOSC_VERSION_FORMAT));
  }
  BloscHeader header;
  header.copied = (std::to_integer<int>(encoded[2]) & BLOSC_MEMCPYED) != 0;
  header.type_bytes = std::to_integer<size_t>(encoded[3]);
  header.decoded_bytes = u32_at(encoded, 4);
  header.block_bytes = u32_at(encoded, 8);
  header.encoded_bytes = u32_at(encoded, 12);
  header.inner_codec = std::to_integer<int>(encoded[2]) >> kInnerCodecShift;
  if (request && (request->exact ? header.decoded_bytes != request->size
                                 : header.decoded_bytes > request->size)) {
    throw_wrong_size(header.decoded_bytes, request->size);
  }
  if (header.encoded_bytes != size) {
    throw_corrupt(
        concat("its Blosc header promises ", header.encoded_bytes, " bytes, there are ", size));
  }
  if (header.type_bytes == 0) throw DataError("damaged Blosc buffer: type size 0");
  if (header.decoded_bytes == 0) return header;
  if (header.block_bytes == 0 || header.block_bytes > header.decoded_bytes ||
      header.block_bytes > BLOSC_MAX_BLOCKSIZE) {
    throw DataError(concat("damaged Blosc buffer: block size ", header.block_bytes, " for ",
                           header.decoded_bytes, " bytes"));
  }
  return header;
}

void BloscCodec::decode(std::span<const std::byte> encoded, const DecodeRequest& request,
                        Buffer& decoded) const {
  const BloscHeader header = read_blosc_header(encoded, &request);
  const std::string inner = header.copied ? "none" : inner_codec_name(header.inner_codec);
  if (header.decoded_bytes > 0) check_body(header, encoded);
  decoded.resize(header.decoded_bytes);
  if (header.decoded_bytes == 0 || decode_part(encoded, request.needed, header, decoded)) return;
  // The _ctx function takes no global lock; callers bring their own threads.
  const int got = blosc_decompress_ctx(encoded.data(), decoded.data(), decoded.size(), 1);
  if (got < 0 || static_cast<size_t>(got) != decoded.size()) {
    throw_corrupt(concat("its Blosc blocks do not decode (inner codec ", inner, ")"));
  }
}

}  // namespace aifs::zarr
