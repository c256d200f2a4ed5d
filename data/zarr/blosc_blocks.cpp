// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/blosc_blocks.h"

#include <blosc.h>
#include <lz4.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/check.h"

namespace aifs::zarr {

namespace {

constexpr size_t kGuessBytes = 512;
// Limits of c-blosc within which the bytes of a block are compressed as one stream per byte of an
// item.
constexpr size_t kMostStreams = 16, kLeastStreamBytes = 128;

int32_t i32_at(const std::byte* bytes) {
  int32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

const char* chars(const std::byte* bytes) {
  return static_cast<const char*>(static_cast<const void*>(bytes));
}
char* chars(std::byte* bytes) {
  return static_cast<char*>(static_cast<void*>(bytes));
}

// Returns the encoded bytes of a stream from the four bytes before it, `room` bytes before the end
// of its block. Throws DataError if they do not fit.
size_t promised_bytes(const std::byte* head, size_t room) {
  const int32_t promised = i32_at(head);
  if (promised <= 0 || static_cast<size_t>(promised) > room)
    throw_corrupt(concat("a stream of a Blosc block promises ", promised, " bytes"));
  return static_cast<size_t>(promised);
}

}  // namespace

std::unique_ptr<BloscBlocks> BloscBlocks::open(const ValueFile& file, size_t offset, size_t size,
                                               size_t decoded_bytes, size_t item_bytes) {
  if (size < kBloscHeaderBytes) {
    throw DataError(
        concat("shorter than a Blosc header: ", size, " of ", kBloscHeaderBytes, " bytes"));
  }
  std::array<std::byte, kBloscHeaderBytes> head{};
  file.read(offset, kBloscHeaderBytes, head.data());
  std::unique_ptr<BloscBlocks> blocks(new BloscBlocks());
  BloscHeader& header = blocks->header_;
  const DecodeRequest request{.size = decoded_bytes, .exact = true};
  header = read_blosc_header(head, size, &request);
  if (decoded_bytes == 0) return nullptr;
  blocks->offset_ = offset;
  const int flags = std::to_integer<int>(head[2]);
  const bool bit_shuffled = (flags & BLOSC_DOBITSHUFFLE) != 0;
  blocks->shuffled_ = (flags & BLOSC_DOSHUFFLE) != 0 && header.type_bytes > 1 && !header.copied;
  // Tiny blocks are slower one by one than all at once, and many of them are nobody's choice.
  constexpr size_t kLeastBlockBytes = 4096, kMostTinyBlocks = 64;
  if (header.block_bytes < kLeastBlockBytes && header.num_blocks() > kMostTinyBlocks)
    return nullptr;
  const bool whole_items = header.block_bytes % item_bytes == 0;
  const bool same_items = !blocks->shuffled_ || header.type_bytes == item_bytes;
  if ((bit_shuffled && !header.copied) || !whole_items || !same_items) return nullptr;
  if (header.copied) {
    if (size - kBloscHeaderBytes < decoded_bytes) throw_corrupt("shorter than its copied content");
  } else {
    constexpr int kDontSplit = 0x10, kFormatShift = 5;
    blocks->split_ = (flags & kDontSplit) == 0 && header.type_bytes <= kMostStreams &&
                     header.block_bytes / header.type_bytes >= kLeastStreamBytes;
    switch (flags >> kFormatShift) {
      case BLOSC_LZ4_FORMAT:
        blocks->format_ = Format::kLz4;
        break;
      case BLOSC_ZLIB_FORMAT:
        blocks->format_ = Format::kZlib;
        break;
      case BLOSC_ZSTD_FORMAT:
        blocks->format_ = Format::kZstd;
        break;
      default:
        return nullptr;
    }
  }
  blocks->read_table(file, offset);
  return blocks;
}

// Blocks follow each other in any order: those of several threads were written as they came.
void BloscBlocks::read_table(const ValueFile& file, size_t offset) {
  const size_t count = num_blocks();
  if (header_.copied) {
    for (size_t block = 0; block < count; ++block) {
      const ByteRange bytes = range(block);
      encoded_.push_back({kBloscHeaderBytes + bytes.begin, kBloscHeaderBytes + bytes.end});
    }
    return;
  }
  const size_t table_end = kBloscHeaderBytes + 4 * count;
  if (table_end > header_.encoded_bytes) throw_corrupt("the table of Blosc blocks does not fit in");
  Buffer table;
  table.resize(4 * count);
  file.read(offset + kBloscHeaderBytes, table.size(), table.data());
  std::vector<size_t> starts;
  for (size_t block = 0; block < count; ++block) {
    const auto start = static_cast<uint32_t>(i32_at(table.data() + 4 * block));
    if (start < table_end || start >= header_.encoded_bytes) {
      throw_corrupt(concat("block ", block, " of ", count, " begins outside the buffer (", start,
                           " of ", header_.encoded_bytes, " bytes)"));
    }
    starts.push_back(start);
  }
  std::vector<size_t> sorted = starts;
  std::sort(sorted.begin(), sorted.end());
  // No block needs more: streams that would are copied.
  const size_t most = header_.block_bytes + 4 * kMostStreams;
  for (const size_t start : starts) {
    const auto next = std::upper_bound(sorted.begin(), sorted.end(), start);
    const size_t end = next == sorted.end() ? header_.encoded_bytes : *next;
    encoded_.push_back({start, std::min(end, start + most)});
  }
}

ByteRange BloscBlocks::range(size_t block) const {
  const size_t begin = block * header_.block_bytes;
  return {begin, std::min(begin + header_.block_bytes, header_.decoded_bytes)};
}

size_t BloscBlocks::num_streams(size_t block) const {
  const ByteRange bytes = range(block);
  const bool is_whole = bytes.end - bytes.begin == header_.block_bytes;
  return split_ && is_whole && !header_.copied ? header_.type_bytes : 1;
}

std::vector<BloscStream> BloscBlocks::streams(const ValueFile& file) const {
  AIFS_CHECK(has_lz4_streams(), "streams of another codec");
  std::vector<BloscStream> all;
  for (size_t block = 0; block < num_blocks(); ++block) {
    const ByteRange bytes = range(block), place = encoded_[block];
    const size_t size = bytes.end - bytes.begin, count = num_streams(block);
    const size_t stream_bytes = size / count;
    if (stream_bytes * count != size) throw_corrupt("streams of a Blosc block differ in size");
    size_t at = place.begin;
    for (size_t stream = 0; stream < count; ++stream) {
      size_t encoded_bytes = stream_bytes;
      if (!header_.copied) {
        std::byte head[4];
        if (place.end - at < sizeof head)
          throw_corrupt("a Blosc block ends before its last stream");
        file.read(offset_ + at, sizeof head, head);
        at += sizeof head;
        encoded_bytes = promised_bytes(head, place.end - at);
      }
      all.push_back({.from = at,
                     .to = bytes.begin + stream * stream_bytes,
                     .encoded_bytes = static_cast<uint32_t>(encoded_bytes),
                     .decoded_bytes = static_cast<uint32_t>(stream_bytes)});
      at += encoded_bytes;
    }
  }
  return all;
}

namespace {

// The first `wanted` bytes of an LZ4 stream of `size`, of which `encoded` is the beginning. False
// if that is too little of it.
bool decode_lz4_prefix(std::span<const std::byte> encoded, std::byte* out, size_t wanted,
                       size_t size) {
  const int got = LZ4_decompress_safe_partial(chars(encoded.data()), chars(out),
                                              static_cast<int>(encoded.size()),
                                              static_cast<int>(wanted), static_cast<int>(size));
  return got >= static_cast<int>(wanted);
}

}  // namespace

void BloscBlocks::decode_stream(std::span<const std::byte> encoded, std::byte* out, size_t size,
                                size_t wanted) const {
  bool done = false;
  switch (format_) {
    case Format::kLz4: {
      done = wanted < size ? decode_lz4_prefix(encoded, out, wanted, size)
                           : LZ4_decompress_safe(chars(encoded.data()), chars(out),
                                                 static_cast<int>(encoded.size()),
                                                 static_cast<int>(size)) == static_cast<int>(size);
      break;
    }
    case Format::kZstd: {
      const size_t got = ZSTD_decompress(out, size, encoded.data(), encoded.size());
      done = !ZSTD_isError(got) && got == size;
      break;
    }
    case Format::kZlib: {
      uLongf got = size;
      const auto* from = static_cast<const Bytef*>(static_cast<const void*>(encoded.data()));
      done = uncompress(static_cast<Bytef*>(static_cast<void*>(out)), &got, from, encoded.size()) ==
                 Z_OK &&
             got == size;
      break;
    }
    case Format::kCopied:
      break;
  }
  if (!done) throw_corrupt("a stream of a Blosc block cannot be decoded");
}

void BloscBlocks::decode_streams_in_part(const ValueFile& file, size_t block, ByteRange needed,
                                         ChunkScratch& scratch) const {
  const ByteRange place = encoded_[block];
  const size_t stream_bytes = header_.block_bytes / header_.type_bytes;
  size_t at = place.begin;
  for (size_t stream = 0; stream < header_.type_bytes; ++stream) {
    std::byte head[4];
    if (place.end - at < sizeof head) throw_corrupt("a Blosc block ends before its last stream");
    file.read(offset_ + at, sizeof head, head);
    at += sizeof head;
    const size_t length = promised_bytes(head, place.end - at);
    std::byte* out = scratch.decoded.data() + stream * stream_bytes;
    if (length == stream_bytes) {  // copied
      file.read(offset_ + at + needed.begin, needed.end - needed.begin, out + needed.begin);
    } else {
      // The first bytes are decoded first, but how much of the stream that takes is a guess.
      const size_t share = length * needed.end / stream_bytes;
      const size_t guess =
          format_ == Format::kLz4 ? std::min(length, share + share / 8 + kGuessBytes) : length;
      scratch.encoded.resize(length);
      file.read(offset_ + at, guess, scratch.encoded.data());
      if (guess == length ||
          !decode_lz4_prefix(scratch.encoded.bytes().first(guess), out, needed.end, stream_bytes)) {
        file.read(offset_ + at + guess, length - guess, scratch.encoded.data() + guess);
        decode_stream(scratch.encoded.bytes(), out, stream_bytes, needed.end);
      }
    }
    at += length;
  }
}

BlockView BloscBlocks::decode(const ValueFile& file, size_t block, ByteRange needed,
                              ChunkScratch& scratch) const {
  const ByteRange bytes = range(block);
  const size_t size = bytes.end - bytes.begin, end = needed.end;
  const ByteRange place = encoded_[block];
  const size_t first_byte = std::max(needed.begin, bytes.begin) - bytes.begin;
  const size_t last_byte = std::min(end, bytes.end) - bytes.begin;
  if (split_ && shuffled_ && !header_.copied && size == header_.block_bytes &&
      last_byte - first_byte < size / 4 * 3) {
    scratch.decoded.resize(size);
    decode_streams_in_part(file, block,
                           {first_byte / header_.type_bytes,
                            (last_byte + header_.type_bytes - 1) / header_.type_bytes},
                           scratch);
    return {scratch.decoded.data(), true, size / header_.type_bytes};
  }
  scratch.encoded.resize(place.end - place.begin);
  file.read(offset_ + place.begin, scratch.encoded.size(), scratch.encoded.data());
  if (header_.copied) return {scratch.encoded.data()};
  const size_t streams = num_streams(block);
  const size_t stream_bytes = size / streams;
  const size_t needed_items =
      (std::min(end, bytes.end) - bytes.begin + header_.type_bytes - 1) / header_.type_bytes;
  size_t wanted = stream_bytes;
  if (streams == header_.type_bytes && shuffled_) wanted = std::min(needed_items, stream_bytes);
  if (streams == 1 && !shuffled_) wanted = std::min(needed_items * header_.type_bytes, size);
  scratch.decoded.resize(size);
  std::span<const std::byte> rest = scratch.encoded.bytes();
  for (size_t stream = 0; stream < streams; ++stream) {
    if (rest.size() < 4) throw_corrupt("a Blosc block ends before its last stream");
    const size_t encoded_bytes = promised_bytes(rest.data(), rest.size() - 4);
    rest = rest.subspan(4);
    std::byte* out = scratch.decoded.data() + stream * stream_bytes;
    if (encoded_bytes == stream_bytes) {
      std::memcpy(out, rest.data(), wanted);
    } else {
      decode_stream(rest.first(encoded_bytes), out, stream_bytes, wanted);
    }
    rest = rest.subspan(encoded_bytes);
  }
  const size_t plane_bytes = shuffled_ ? size / header_.type_bytes : 0;
  return {scratch.decoded.data(), shuffled_, plane_bytes};
}

}  // namespace aifs::zarr
