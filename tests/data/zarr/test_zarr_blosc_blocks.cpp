// SPDX-License-Identifier: Apache-2.0
// c-blosc writes, and says what blocks decode to.
#include "data/zarr/blosc_blocks.h"

#include <cmath>
#include <cstring>
#include <random>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::zarr;
using test::blosc_encode;

namespace {

// Bytes in memory, after some that belong to others.
class Bytes : public ValueFile {
 public:
  Bytes(std::string bytes, size_t offset) : bytes_(std::string(offset, '?') + std::move(bytes)) {}
  size_t size() const override { return bytes_.size(); }
  void read(size_t offset, size_t length, std::byte* out) const override {
    if (offset > bytes_.size() || length > bytes_.size() - offset)
      throw DataError("read beyond the end");
    std::memcpy(out, bytes_.data() + offset, length);
  }
  std::string bytes_;
};

constexpr int kNoShuffle = 0, kShuffle = 1, kBitShuffle = 2;

std::string waves(size_t count) {
  std::mt19937 random(7);
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = std::sin(0.01f * static_cast<float>(i)) + 1e-3f * static_cast<float>(random() % 64);
  std::string raw(4 * count, '\0');
  std::memcpy(raw.data(), values.data(), raw.size());
  return raw;
}

// The bytes of a view in the order of the array.
std::string plain(const BlockView& view, size_t bytes, size_t item_bytes) {
  std::string out(bytes, '\0');
  for (size_t i = 0; i < bytes / item_bytes; ++i) {
    for (size_t b = 0; b < item_bytes; ++b) {
      out[i * item_bytes + b] = static_cast<char>(view.planar ? view.bytes[b * view.plane_bytes + i]
                                                              : view.bytes[i * item_bytes + b]);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("blocks decode to what c-blosc encoded, whole or in part", "[blosc_blocks]") {
  constexpr size_t kCount = 70001;  // the last block is shorter
  const std::string raw = waves(kCount);
  for (const char* codec : {"lz4", "lz4hc", "zlib", "zstd"}) {
    for (const int shuffle : {kShuffle, kNoShuffle}) {
      for (const size_t block_bytes : {0, 8192, 65536}) {
        for (const int threads : {1, 4}) {  // blocks of several threads come in any order
          constexpr size_t kOffset = 5;
          const Bytes file(blosc_encode(raw, 4, codec, shuffle, block_bytes, threads), kOffset);
          INFO(codec << ", shuffle " << shuffle << ", blocks " << block_bytes << ", threads "
                     << threads);
          const auto blocks =
              BloscBlocks::open(file, kOffset, file.size() - kOffset, raw.size(), 4);
          REQUIRE(blocks);
          ChunkScratch scratch;
          size_t next = 0;
          for (size_t block = 0; block < blocks->num_blocks(); ++block) {
            const ByteRange range = blocks->range(block);
            REQUIRE(range.begin == next);
            next = range.end;
            const size_t size = range.end - range.begin;
            for (const size_t part : {size, size / 3 / 4 * 4, size_t{4}}) {
              const BlockView view =
                  blocks->decode(file, block, {range.begin, range.begin + part}, scratch);
              REQUIRE((plain(view, part, 4) == raw.substr(range.begin, part)));
            }
          }
          REQUIRE(next == raw.size());
        }
      }
    }
  }
}

TEST_CASE("any run of items of a block is what c-blosc encoded", "[blosc_blocks]") {
  // Two streams of each block compress, two hardly or not at all.
  std::mt19937 random(5);
  std::string raw = waves(50000);
  for (size_t i = 0; i < raw.size(); i += 4) {
    raw[i] = static_cast<char>(random());
    raw[i + 1] = static_cast<char>(random() % (i < raw.size() / 2 ? 256 : 11));
  }
  for (const char* codec : {"lz4", "zlib", "zstd"}) {
    const Bytes file(blosc_encode(raw, 4, codec, kShuffle, 16384), 0);
    const auto blocks = BloscBlocks::open(file, 0, file.size(), raw.size(), 4);
    REQUIRE(blocks);
    ChunkScratch scratch;
    for (size_t block = 0; block < blocks->num_blocks(); ++block) {
      const ByteRange range = blocks->range(block);
      const size_t items = (range.end - range.begin) / 4;
      for (int trial = 0; trial < 20; ++trial) {
        const size_t first = random() % items, count = 1 + random() % (items - first);
        const BlockView view = blocks->decode(
            file, block, {range.begin + 4 * first, range.begin + 4 * (first + count)}, scratch);
        const std::string all = plain(view, 4 * items, 4);
        REQUIRE(
            (all.substr(4 * first, 4 * count) == raw.substr(range.begin + 4 * first, 4 * count)));
      }
    }
  }
}

TEST_CASE("what cannot be compressed is copied, and read so", "[blosc_blocks]") {
  std::mt19937 random(3);
  std::string raw(100000, '\0');
  for (char& byte : raw)
    byte = static_cast<char>(random());
  for (const int shuffle : {kShuffle, kNoShuffle}) {
    const Bytes file(blosc_encode(raw, 4, "lz4", shuffle, 16384), 0);
    const auto blocks = BloscBlocks::open(file, 0, file.size(), raw.size(), 4);
    REQUIRE(blocks);
    ChunkScratch scratch;
    for (size_t block = 0; block < blocks->num_blocks(); ++block) {
      const ByteRange range = blocks->range(block);
      const BlockView view = blocks->decode(file, block, range, scratch);
      REQUIRE((plain(view, range.end - range.begin, 4) ==
               raw.substr(range.begin, range.end - range.begin)));
    }
  }
}

TEST_CASE("items of other widths are planar, too; what only c-blosc knows is left to it",
          "[blosc_blocks]") {
  const std::string raw = waves(20000);
  for (const size_t width : {1, 2, 8}) {
    const Bytes file(blosc_encode(raw, width, "lz4", kShuffle, 8192), 0);
    const auto blocks = BloscBlocks::open(file, 0, file.size(), raw.size(), width);
    REQUIRE(blocks);
    ChunkScratch scratch;
    const ByteRange range = blocks->range(1);
    const size_t size = range.end - range.begin;
    const BlockView view = blocks->decode(file, 1, range, scratch);
    INFO(width << " bytes an item, " << size << " a block");
    REQUIRE((plain(view, size, width) == raw.substr(range.begin, size)));
  }
  const std::string smooth(80000, '\x01');
  const auto is_left = [&](const char* codec, int shuffle, size_t type_bytes) {
    const Bytes file(blosc_encode(smooth, type_bytes, codec, shuffle, 8192), 0);
    return BloscBlocks::open(file, 0, file.size(), smooth.size(), 4) == nullptr;
  };
  REQUIRE_FALSE(is_left("lz4", kShuffle, 4));
  REQUIRE(is_left("lz4", kBitShuffle, 4));
  REQUIRE(is_left("blosclz", kShuffle, 4));
  REQUIRE(is_left("lz4", kShuffle, 2));  // shuffled as other items
}

TEST_CASE("damaged buffers are errors, whatever byte is wrong", "[blosc_blocks]") {
  const std::string raw = waves(9000);
  const std::string good = blosc_encode(raw, 4, "lz4", kShuffle, 8192);
  const auto read_all = [&](const Bytes& file) {
    const auto blocks = BloscBlocks::open(file, 0, file.size(), raw.size(), 4);
    if (!blocks) return;
    ChunkScratch scratch;
    for (size_t block = 0; block < blocks->num_blocks(); ++block) {
      const ByteRange range = blocks->range(block);
      blocks->decode(file, block, range, scratch);
      blocks->decode(file, block, {range.begin + (range.end - range.begin) / 8 * 4, range.end},
                     scratch);
    }
  };
  for (size_t length = 0; length < good.size(); length += 97)
    REQUIRE_THROWS_AS(read_all(Bytes(good.substr(0, length), 0)), DataError);
  // A flipped byte is an error or other values, never a crash.
  for (size_t at = 0; at < std::min<size_t>(good.size(), 600); ++at) {
    for (const int flip : {1, 0x80, 0xff}) {
      Bytes file(good, 0);
      file.bytes_[at] = static_cast<char>(file.bytes_[at] ^ flip);
      try {
        read_all(file);
      } catch (const DataError&) {
      }
    }
  }
  REQUIRE_THROWS_WITH(BloscBlocks::open(Bytes(good, 0), 0, good.size(), raw.size() + 4, 4),
                      ContainsSubstring("sizes do not agree"));
}
