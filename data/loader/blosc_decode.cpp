// SPDX-License-Identifier: Apache-2.0
#include "data/loader/blosc_decode.h"

#include <ATen/ATen.h>

#include "core/check.h"

#ifdef AIFS_HAVE_CUDA
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "data/loader/blosc_decode_cuda.h"
#endif

namespace aifs::data {

namespace {

bool decode_stream(const zarr::BloscStream& stream, const uint8_t* encoded, uint8_t* decoded) {
  const uint8_t* from = encoded + stream.from;
  uint8_t* to = decoded + stream.to;
  if (stream.is_raw()) {
    std::memcpy(to, from, stream.decoded_bytes);
    return true;
  }
  lz4::OneLane lane(from);
  return decode_lz4(lane, from, stream.encoded_bytes, to, stream.decoded_bytes);
}

template <class Bits>
void place_on_cpu(const StoredPart& part) {
  for (int64_t member = 0; member < part.num_members; ++member) {
    for (int64_t cell = 0; cell < part.num_cells; ++cell) {
      for (int32_t i = 0; i < part.num_columns; ++i) {
        const StoredColumn& c = part.columns[i];
        const int64_t item = c.first_item + member * part.member_items + cell;
        const int64_t at = cell * part.width + c.column;
        float x = stored_value<Bits>(part, static_cast<uint32_t>(item));
        if (x != x && !c.is_filled) {
          *part.first_nan = std::min(*part.first_nan, static_cast<unsigned long long>(at));
        } else if (x != x) {
          x = c.fill;
          if (part.nan_mask) part.nan_mask[at] = 1;
        }
        part.cells[member * part.row_cells * part.width + at] = normalised(x, c);
      }
    }
  }
}

}  // namespace

void decode_streams(const at::Tensor& encoded, const at::Tensor& streams, int64_t num_streams,
                    const at::Tensor& decoded, const at::Tensor& damaged) {
  const auto* table =
      static_cast<const zarr::BloscStream*>(static_cast<const void*>(streams.const_data_ptr()));
  AIFS_CHECK(streams.nbytes() >= static_cast<size_t>(num_streams) * sizeof *table &&
                 damaged.numel() >= num_streams,
             num_streams, " streams");
#ifdef AIFS_HAVE_CUDA
  if (encoded.is_cuda()) {
    launch_decode_streams(encoded.const_data_ptr<uint8_t>(), table, num_streams,
                          decoded.data_ptr<uint8_t>(), damaged.data_ptr<int32_t>(),
                          c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return;
  }
#endif
  for (int64_t i = 0; i < num_streams; ++i) {
    const bool is_sound =
        decode_stream(table[i], encoded.const_data_ptr<uint8_t>(), decoded.data_ptr<uint8_t>());
    damaged.data_ptr<int32_t>()[i] = is_sound ? 0 : 1;
  }
}

void place_part(const StoredPart& part, const c10::Device& device) {
#ifdef AIFS_HAVE_CUDA
  if (device.is_cuda()) {
    launch_place_part(part, c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return;
  }
#endif
  AIFS_CHECK(device.is_cpu(), "fields of another device");
  switch (part.type) {
    case StoredType::kFloat16:
      return place_on_cpu<uint16_t>(part);
    case StoredType::kFloat32:
      return place_on_cpu<uint32_t>(part);
    case StoredType::kFloat64:
      return place_on_cpu<uint64_t>(part);
  }
}

}  // namespace aifs::data
