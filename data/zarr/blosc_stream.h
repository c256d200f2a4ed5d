// SPDX-License-Identifier: Apache-2.0
// Names one LZ4 stream of a Blosc buffer, in plain data that host and GPU code share.
#pragma once

#include <cstdint>

namespace aifs::zarr {

struct BloscStream {
  uint64_t from = 0;  // first encoded byte, counted in the buffer
  uint64_t to = 0;    // first decoded byte, counted in the decoded bytes as Blosc shuffles them
  uint32_t encoded_bytes = 0;
  uint32_t decoded_bytes = 0;

  // Returns true if the bytes are stored as they are. Blosc marks that by equal sizes.
  constexpr bool is_raw() const { return encoded_bytes == decoded_bytes; }
};

}  // namespace aifs::zarr
