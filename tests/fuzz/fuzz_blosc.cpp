// SPDX-License-Identifier: Apache-2.0
// A Blosc buffer, decoded as a whole, by blocks and by streams. Two bytes before it say how many
// items of four bytes are expected.
#include <algorithm>

#include "data/fields/lz4_decode.h"
#include "data/zarr/array.h"
#include "data/zarr/blosc_blocks.h"
#include "data/zarr/codec_factory.h"
#include "tests/fuzz/fuzz.h"

using namespace aifs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size < 3) return 0;
  const std::string_view input = fuzz::view_of(bytes, size);
  const size_t expected = 4 * (size_t{bytes[0]} + 256 * size_t{bytes[1]});
  zarr::MemoryStore store("fuzz");
  store.put("x", fuzz::text_of(bytes + 2, size - 2));
  const auto file = store.open("x");
  fuzz::run(input, [&] {
    zarr::Buffer encoded, decoded;
    store.get("x", size, encoded);
    zarr::make_codec_v2("blosc")->decode({encoded.data(), encoded.size()},
                                         {.size = expected, .exact = true}, decoded);
  });
  return fuzz::run(input, [&] {
    const auto blocks = zarr::BloscBlocks::open(*file, 0, file->size(), expected, 4);
    if (!blocks) return;
    zarr::ChunkScratch scratch;
    for (size_t block = 0; block < blocks->num_blocks(); ++block) {
      const zarr::ByteRange range = blocks->range(block);
      blocks->decode(*file, block, range, scratch);
      const size_t middle = range.begin + (range.end - range.begin) / 8 * 4;
      blocks->decode(*file, block, {middle, std::max(middle + 4, range.end - 4)}, scratch);
    }
    if (!blocks->has_lz4_streams()) return;
    for (const zarr::BloscStream& stream : blocks->streams(*file)) {
      // Exactly as many bytes as the stream has, so that a sanitizer sees others being used.
      std::vector<std::byte> in(stream.encoded_bytes);
      std::vector<uint8_t> out(stream.decoded_bytes);
      file->read(stream.from, in.size(), in.data());
      const auto* from = static_cast<const uint8_t*>(static_cast<const void*>(in.data()));
      data::lz4::OneLane lane(from);
      if (!stream.is_raw())
        data::decode_lz4(lane, from, stream.encoded_bytes, out.data(), stream.decoded_bytes);
    }
  });
}
