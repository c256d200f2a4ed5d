// SPDX-License-Identifier: Apache-2.0
// Kernels that decode Blosc buffers and place what is in them. See data/loader/blosc_decode.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "data/fields/stored_fields.h"
#include "data/zarr/blosc_stream.h"

namespace aifs::data {

// Decodes or copies each of the streams from `encoded` to `decoded`, one warp a stream.
// damaged[i] (int32) becomes 1 if stream i cannot be decoded, else 0. All on the device; `encoded`
// is readable from 16 bytes before each stream, and up to 16 bytes beyond. Asynchronous.
void launch_decode_streams(const uint8_t* encoded, const zarr::BloscStream* streams,
                           int64_t num_streams, uint8_t* decoded, int32_t* damaged,
                           cudaStream_t stream);

// Unshuffles, fills, normalises and writes a part cell by cell. Its pointers are of the device.
// Asynchronous.
void launch_place_part(const StoredPart& part, cudaStream_t stream);

}  // namespace aifs::data
