// SPDX-License-Identifier: Apache-2.0
// A stream is decoded by one warp in a block of its own, so that streams that end early make room
// for others. Time goes into waiting: a sequence of LZ4 begins where the one before it ends, and
// its match may be what was just written. Few registers and little shared memory let other kernels
// compute meanwhile.
#include "data/loader/blosc_decode_cuda.h"

namespace aifs::data {

namespace {

constexpr uint32_t kWarp = 32;
constexpr uint32_t kUnit = sizeof(uint4);
constexpr uint32_t kWindowUnits = 64;  // of the input, in shared memory: 1 KiB
constexpr uint32_t kWindowBytes = kWindowUnits * kUnit;

// The lanes of a warp. They read tokens, lengths and offsets from a window of the input, because
// a load from shared memory is answered many times sooner than one from global memory.
class WarpLanes {
 public:
  static constexpr uint32_t kCount = kWarp;

  __device__ WarpLanes(uint4* window, const uint8_t* from, uint32_t num_in)
      : window_(window), skew_(reinterpret_cast<uintptr_t>(from) % kUnit) {
    units_ = reinterpret_cast<const uint4*>(from - skew_);
    end_ = skew_ + num_in;
    fill(skew_);
  }

  template <class Body>
  __device__ void each(Body body) const {
    body(threadIdx.x);
  }
  __device__ void sync() const { __syncwarp(); }
  __device__ uint32_t byte(uint32_t at) {
    const uint32_t position = at + skew_;
    if (position - begin_ >= kWindowBytes) fill(position);
    return reinterpret_cast<const uint8_t*>(window_)[position - begin_];
  }

 private:
  // Moves the window to a position, counted from the first whole unit.
  __device__ void fill(uint32_t position) {
    __syncwarp();
    const uint32_t first = position / kUnit;
    for (uint32_t i = threadIdx.x; i < kWindowUnits; i += kWarp) {
      if ((first + i) * kUnit < end_) window_[i] = units_[first + i];
    }
    begin_ = first * kUnit;
    __syncwarp();
  }

  uint4* window_;
  uint32_t skew_;
  const uint4* units_;
  uint32_t end_, begin_ = 0;
};

__global__ void __launch_bounds__(kWarp)
    decode_streams_kernel(const uint8_t* __restrict__ encoded,
                          const zarr::BloscStream* __restrict__ streams, uint8_t* decoded,
                          int32_t* __restrict__ damaged) {
  __shared__ uint4 window[kWindowUnits];
  const zarr::BloscStream stream = streams[blockIdx.x];
  const uint8_t* from = encoded + stream.from;
  uint8_t* to = decoded + stream.to;
  WarpLanes lanes(window, from, stream.encoded_bytes);
  bool is_sound = true;
  if (stream.is_raw()) {
    lz4::copy_apart(lanes, from, to, stream.decoded_bytes);
  } else {
    is_sound = decode_lz4(lanes, from, stream.encoded_bytes, to, stream.decoded_bytes);
  }
  if (threadIdx.x == 0) damaged[blockIdx.x] = is_sound ? 0 : 1;
}

constexpr int kTileCells = 128, kTileColumns = 32, kThreads = 256;

// A tile goes through shared memory: columns of cells in, cells of columns out.
template <class Bits>
__global__ void __launch_bounds__(kThreads)
    place_part_kernel(const __grid_constant__ StoredPart part) {
  __shared__ float tile[kTileColumns][kTileCells + 1];
  const int64_t first_cell = static_cast<int64_t>(blockIdx.x) * kTileCells;
  const int first_column = static_cast<int>(blockIdx.y) * kTileColumns;
  const int64_t member = blockIdx.z;
  for (int i = threadIdx.x; i < kTileColumns * kTileCells; i += kThreads) {
    const int column = i / kTileCells, in_tile = i % kTileCells;
    const int64_t cell = first_cell + in_tile;
    if (first_column + column >= part.num_columns || cell >= part.num_cells) continue;
    const StoredColumn& c = part.columns[first_column + column];
    const int64_t item = c.first_item + member * part.member_items + cell;
    float x = stored_value<Bits>(part, static_cast<uint32_t>(item));
    if (x != x) {
      const int64_t at = cell * part.width + c.column;
      if (!c.is_filled) {
        atomicMin(part.first_nan, static_cast<unsigned long long>(at));
      } else {
        x = c.fill;
        if (part.nan_mask) part.nan_mask[at] = 1;
      }
    }
    tile[column][in_tile] = normalised(x, c);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kTileColumns * kTileCells; i += kThreads) {
    const int in_tile = i / kTileColumns, column = i % kTileColumns;
    const int64_t cell = first_cell + in_tile;
    if (first_column + column >= part.num_columns || cell >= part.num_cells) continue;
    part.cells[(member * part.row_cells + cell) * part.width +
               part.columns[first_column + column].column] = tile[column][in_tile];
  }
}

}  // namespace

void launch_decode_streams(const uint8_t* encoded, const zarr::BloscStream* streams,
                           int64_t num_streams, uint8_t* decoded, int32_t* damaged,
                           cudaStream_t stream) {
  if (num_streams == 0) return;
  decode_streams_kernel<<<static_cast<unsigned>(num_streams), kWarp, 0, stream>>>(encoded, streams,
                                                                                  decoded, damaged);
}

void launch_place_part(const StoredPart& part, cudaStream_t stream) {
  if (part.num_columns == 0 || part.num_cells == 0 || part.num_members == 0) return;
  const dim3 grid(static_cast<unsigned>((part.num_cells + kTileCells - 1) / kTileCells),
                  static_cast<unsigned>((part.num_columns + kTileColumns - 1) / kTileColumns),
                  static_cast<unsigned>(part.num_members));
  switch (part.type) {
    case StoredType::kFloat16:
      return place_part_kernel<uint16_t><<<grid, kThreads, 0, stream>>>(part);
    case StoredType::kFloat32:
      return place_part_kernel<uint32_t><<<grid, kThreads, 0, stream>>>(part);
    case StoredType::kFloat64:
      return place_part_kernel<uint64_t><<<grid, kThreads, 0, stream>>>(part);
  }
}

}  // namespace aifs::data
