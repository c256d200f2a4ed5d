// SPDX-License-Identifier: Apache-2.0
// Decodes whole rows (dates) on a device instead of in reading threads: files go to page-locked
// memory as they are, encoded bytes go to the device, and kernels make normalised cells of them.
// The steps are apart, so that each can be timed, and others run beside them. A trial: what it
// cannot decode it refuses, and training does not use it.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "data/loader/buffer_pool.h"
#include "data/loader/encoded_rows.h"

namespace aifs::data {

class RowDecoder {
 public:
  // `source` outlives this. Page-locked memory comes from `pool`. Throws ConfigError naming the
  // option if the values need what the kernels do not do: another dataset than one Anemoi store,
  // remapped variables, NaN filled with another variable or in ensembles.
  RowDecoder(const SampleSource& source, c10::Device device, std::shared_ptr<BufferPool> pool);

  RowDecoder(const RowDecoder&) = delete;
  RowDecoder& operator=(const RowDecoder&) = delete;

  // To be called in this order; memory is kept for the next rows. The first three work on the host
  // and need no device; the memory that read() and parse() fill must not be in use by a copy any
  // more. The last three are asynchronous on the current stream.
  void open(const std::vector<int64_t>& rows);  // throws as EncodedRows
  void read(int64_t threads);                   // throws DataError
  void parse();                                 // throws DataError
  void copy();
  void decode();
  void place();

  // Looks at what decode() and place() have reported, which must have ended. Throws DataError if a
  // stream is damaged, or if a value is NaN and is not filled.
  void check() const;

  // Returns the values of the last rows: (rows, E, N, V) f32, normalised, on the device.
  at::Tensor cells() const;
  // Returns where NaN were filled in the first row: (N, V) u8; undefined if nothing is filled.
  at::Tensor nan_mask() const { return nan_mask_; }

  int64_t encoded_bytes() const { return static_cast<int64_t>(rows_->encoded_bytes()); }
  int64_t decoded_bytes() const { return static_cast<int64_t>(rows_->decoded_bytes()); }
  int64_t num_streams() const { return num_streams_; }
  int64_t num_raw_streams() const { return num_raw_streams_; }

 private:
  // Memory of the host and its copy on the device, which grow together.
  struct Mirror {
    std::shared_ptr<std::byte> host;
    at::Tensor device;
    size_t capacity = 0;
  };
  void grow(Mirror& mirror, size_t bytes);
  at::Tensor host_tensor(const Mirror& mirror, size_t bytes) const;

  const SampleSource& source_;
  const AnemoiDataset* dataset_;
  const ColumnMaps maps_;
  const c10::Device device_;
  const std::shared_ptr<BufferPool> pool_;

  std::vector<int64_t> row_numbers_;
  std::unique_ptr<EncodedRows> rows_;
  int64_t num_streams_ = 0, num_raw_streams_ = 0;
  Mirror encoded_, tables_, reports_;
  size_t table_bytes_ = 0, columns_begin_ = 0, report_bytes_ = 0, nan_begin_ = 0;
  at::Tensor decoded_, cells_, nan_mask_;
};

}  // namespace aifs::data
