// SPDX-License-Identifier: Apache-2.0
// c-blosc writes buffers; the reader on the CPU says what their blocks decode to.
#include "data/loader/blosc_decode.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstring>
#include <random>

#include "data/zarr/blosc_blocks.h"
#include "tests/support/catch.h"
#include "tests/support/test_device.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::data;
using test::blosc_encode;
using test::kDevice;

namespace {

constexpr int64_t kGuard = 4096;  // bytes around the decoded ones, which must stay as they are
constexpr int64_t kUnused = 64;   // behind the encoded ones
constexpr uint8_t kMark = 0xa5;

class Bytes : public zarr::ValueFile {
 public:
  explicit Bytes(std::string bytes) : bytes_(std::move(bytes)) {}
  size_t size() const override { return bytes_.size(); }
  void read(size_t offset, size_t length, std::byte* out) const override {
    REQUIRE(offset + length <= bytes_.size());
    std::memcpy(out, bytes_.data() + offset, length);
  }

 private:
  std::string bytes_;
};

struct Frame {
  std::string bytes;
  std::unique_ptr<zarr::BloscBlocks> blocks;
  std::vector<zarr::BloscStream> streams;
};

Frame open_frame(std::string bytes, size_t decoded_bytes, size_t item_bytes) {
  const Bytes file(bytes);
  Frame frame{.bytes = std::move(bytes),
              .blocks = zarr::BloscBlocks::open(file, 0, file.size(), decoded_bytes, item_bytes),
              .streams = {}};
  REQUIRE(frame.blocks);
  REQUIRE(frame.blocks->has_lz4_streams());
  frame.streams = frame.blocks->streams(file);
  return frame;
}

at::Tensor tensor_of(const void* data, size_t bytes) {
  const at::Tensor tensor = at::empty({static_cast<int64_t>(bytes)}, at::kByte);
  std::memcpy(tensor.data_ptr(), data, bytes);
  return tensor;
}

struct Decoded {
  at::Tensor bytes, damaged;  // on the CPU
};

// Decodes a frame on a device, and looks at what lies around the result.
Decoded decode(const Frame& frame, int64_t decoded_bytes, const c10::Device& device) {
  std::vector<zarr::BloscStream> streams = frame.streams;
  for (zarr::BloscStream& stream : streams)
    stream.to += kGuard;
  const std::string padded = frame.bytes + std::string(kUnused, '\0');
  const at::Tensor decoded =
      at::full({decoded_bytes + 2 * kGuard}, kMark, at::TensorOptions(at::kByte).device(device));
  const auto count = static_cast<int64_t>(streams.size());
  const at::Tensor damaged = at::full({count}, -1, at::TensorOptions(at::kInt).device(device));
  decode_streams(tensor_of(padded.data(), padded.size()).to(device),
                 tensor_of(streams.data(), streams.size() * sizeof streams[0]).to(device), count,
                 decoded, damaged);
  const at::Tensor all = decoded.cpu();
  REQUIRE(all.narrow(0, 0, kGuard).eq(kMark).all().item<bool>());
  REQUIRE(all.narrow(0, kGuard + decoded_bytes, kGuard).eq(kMark).all().item<bool>());
  return {all.narrow(0, kGuard, decoded_bytes), damaged.cpu()};
}

std::string waves(size_t bytes) {
  std::mt19937 random(7);
  std::string raw;
  for (size_t i = 0; raw.size() < bytes; ++i) {
    const float value =
        std::sin(0.01f * static_cast<float>(i)) + 1e-3f * static_cast<float>(random() % 64);
    raw.append(static_cast<const char*>(static_cast<const void*>(&value)), sizeof value);
  }
  raw.resize(bytes);
  return raw;
}

std::string noise(size_t bytes) {
  std::mt19937 random(3);
  std::string raw(bytes, '\0');
  for (char& byte : raw)
    byte = static_cast<char>(random());
  return raw;
}

// Land and sea: long runs, and repetitions of a whole row.
std::string steps(size_t bytes) {
  std::string raw(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i)
    raw[i] = static_cast<char>(i % 4 == 3 && i / 4 % 1283 > 400 ? 0x3f : 0);
  return raw;
}

}  // namespace

TEST_CASE("streams decode to the blocks that the CPU decodes", "[blosc_decode]") {
  int64_t num_raw = 0, num_packed = 0;
  for (const size_t width : {2, 4, 8}) {
    for (const size_t items : {10, 3000, 70001}) {  // copied; one block; a shorter last block
      for (const auto& make : {waves, noise, steps}) {
        for (const int shuffle : {0, 1}) {
          for (const size_t block_bytes : {0, 8192, 65536}) {
            const std::string raw = make(width * items);
            INFO(width << " bytes an item, " << items << " items, shuffle " << shuffle
                       << ", blocks " << block_bytes);
            const Frame frame = open_frame(blosc_encode(raw, width, "lz4", shuffle, block_bytes),
                                           raw.size(), width);
            const Decoded decoded = decode(frame, static_cast<int64_t>(raw.size()), kDevice);
            REQUIRE(decoded.damaged.eq(0).all().item<bool>());
            const Bytes file(frame.bytes);
            zarr::ChunkScratch scratch;
            for (size_t block = 0; block < frame.blocks->num_blocks(); ++block) {
              const zarr::ByteRange range = frame.blocks->range(block);
              const zarr::BlockView view = frame.blocks->decode(file, block, range, scratch);
              REQUIRE(std::memcmp(decoded.bytes.const_data_ptr<uint8_t>() + range.begin, view.bytes,
                                  range.end - range.begin) == 0);
            }
            for (const zarr::BloscStream& stream : frame.streams)
              (stream.is_raw() ? num_raw : num_packed) += 1;
          }
        }
      }
    }
  }
  REQUIRE(num_raw > 100);
  REQUIRE(num_packed > 100);
}

TEST_CASE("streams cover the decoded bytes, each once", "[blosc_decode]") {
  const std::string raw = waves(4 * 70001);
  for (const int threads : {1, 4}) {
    const Frame frame = open_frame(blosc_encode(raw, 4, "lz4", 1, 8192, threads), raw.size(), 4);
    uint64_t next = 0;
    for (const zarr::BloscStream& stream : frame.streams) {
      REQUIRE(stream.to == next);
      next += stream.decoded_bytes;
      REQUIRE(stream.from + stream.encoded_bytes <= frame.bytes.size());
    }
    REQUIRE(next == raw.size());
    // The last block is shorter: one stream.
    REQUIRE(frame.streams.size() == 4 * (frame.blocks->num_blocks() - 1) + 1);
  }
}

TEST_CASE("damaged streams are reported, the others decode", "[blosc_decode]") {
  std::mt19937 random(9);
  const std::string raw = waves(4 * 70001);
  const Frame good = open_frame(blosc_encode(raw, 4, "lz4", 1, 8192), raw.size(), 4);
  const auto size = static_cast<int64_t>(raw.size());
  int64_t num_damaged = 0;
  for (int trial = 0; trial < 40; ++trial) {
    Frame frame{.bytes = good.bytes, .blocks = nullptr, .streams = good.streams};
    for (size_t i = 0; i < frame.streams.size(); i += 1 + random() % 3) {
      zarr::BloscStream& stream = frame.streams[i];
      if (stream.is_raw()) continue;
      char* bytes = frame.bytes.data() + stream.from;
      switch (random() % 4) {
        case 0:  // anything
          for (uint32_t k = 0; k < stream.encoded_bytes; ++k)
            bytes[k] = static_cast<char>(random());
          break;
        case 1:  // endless lengths
          std::fill(bytes, bytes + stream.encoded_bytes, '\xff');
          break;
        case 2:  // cut off
          stream.encoded_bytes = 1 + static_cast<uint32_t>(random()) % stream.encoded_bytes;
          break;
        default:
          bytes[random() % stream.encoded_bytes] = static_cast<char>(random());
      }
      if (stream.is_raw()) stream.encoded_bytes -= 1;
    }
    const Decoded expected = decode(frame, size, c10::kCPU);
    const Decoded decoded = decode(frame, size, kDevice);
    REQUIRE(decoded.damaged.equal(expected.damaged));
    num_damaged += decoded.damaged.sum().item<int64_t>();
    for (size_t i = 0; i < frame.streams.size(); ++i) {
      if (decoded.damaged[static_cast<int64_t>(i)].item<int32_t>() != 0) continue;
      const auto begin = static_cast<int64_t>(frame.streams[i].to);
      const int64_t length = frame.streams[i].decoded_bytes;
      REQUIRE(
          decoded.bytes.narrow(0, begin, length).equal(expected.bytes.narrow(0, begin, length)));
    }
  }
  REQUIRE(num_damaged > 50);
}
