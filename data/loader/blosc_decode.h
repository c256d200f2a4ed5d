// SPDX-License-Identifier: Apache-2.0
// Decodes LZ4 streams of Blosc buffers and turns decoded chunks into normalised cells, where the
// tensors are: kernels on a GPU, the same functions by one thread on the CPU (to check against, not
// to be fast). Both give the bits that reading on the CPU gives.
#pragma once

#include <ATen/core/Tensor.h>

#include "data/fields/stored_fields.h"
#include "data/zarr/blosc_stream.h"

namespace aifs::data {

// Decodes the first `num_streams` of `streams` (zarr::BloscStream in u8) from `encoded` (bytes, u8)
// to `decoded` (bytes, u8). damaged[i] (num_streams, i32) becomes 1 if stream i is not what it
// promises, else 0; its decoded bytes are then undefined. All contiguous on one device.
// Preconditions: the ranges of each stream lie within the tensors, those of `encoded` at least 16
// bytes from either end; decoded ranges are disjoint. Asynchronous on the current stream.
void decode_streams(const at::Tensor& encoded, const at::Tensor& streams, int64_t num_streams,
                    const at::Tensor& decoded, const at::Tensor& damaged);

// Unshuffles, fills, normalises and writes a part, whose pointers are of `device`. Asynchronous on
// the current stream.
void place_part(const StoredPart& part, const c10::Device& device);

}  // namespace aifs::data
