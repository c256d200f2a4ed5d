// SPDX-License-Identifier: Apache-2.0
// How readers hand over what they have read: runs of one variable at neighbouring cells, in any
// order and from several threads. A reader keeps no field of a whole date; what becomes of the
// values (filled, normalised, placed) is decided while they are in the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "data/zarr/buffer.h"

namespace aifs::data {

// `count` values of a variable and member, from a cell on. Physical units, float32.
struct FieldRun {
  int64_t column = 0, member = 0, first_cell = 0, count = 0;
  // Value i is values[i * stride] (stride 0: one value for all) ...
  const float* values = nullptr;
  int64_t stride = 1;
  // ... or, where `values` is null, has the bytes planes[b * plane_bytes + i], b = 0 ... 3, little
  // endian: as shuffled blocks hold them.
  const std::byte* planes = nullptr;
  size_t plane_bytes = 0;
  // With `values`: the same numbers, `stride` apart, before they were rounded, where the source has
  // float64; else null. For those that compute with them; sinks may ignore them.
  const double* doubles = nullptr;
};

class FieldSink {
 public:
  virtual ~FieldSink() = default;
  // Takes a run; its memory is the reader's again afterwards. Runs that do not overlap may come
  // from several threads at once. Throws DataError if the values cannot be used.
  virtual void put(const FieldRun& run) = 0;
};

// Memory of one reading thread, kept between pieces because fresh memory is slow.
struct ReadScratch {
  zarr::ChunkScratch chunk;
  zarr::Buffer floats, doubles;
  // One for each sink on the way of a run that changes its values.
  struct Mapped {
    zarr::Buffer floats, doubles;
  };
  std::deque<Mapped> mapped;
  size_t num_mapped = 0;
};

// One row (date) of a dataset, opened for reading in pieces that threads share.
class RowReader {
 public:
  virtual ~RowReader() = default;
  virtual size_t num_pieces() const = 0;
  // Reads one piece, which gives some runs. Each piece is read once; thread-safe. Throws DataError
  // naming file, array and chunk.
  virtual void read_piece(size_t piece, FieldSink& sink, ReadScratch& scratch) = 0;
};

}  // namespace aifs::data
