// SPDX-License-Identifier: Apache-2.0
// Reads rows (dates) of an Anemoi dataset as their files hold them, and lists what a decoder has to
// do with the bytes. For decoders outside the reading threads, such as a GPU.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "data/fields/stored_fields.h"
#include "data/loader/row_assembly.h"
#include "data/sources/anemoi_dataset.h"
#include "data/zarr/blosc_stream.h"

namespace aifs::data {

class EncodedRows {
 public:
  // Describes what a chunk has of a row.
  struct Part {
    size_t row = 0;                     // position in the list of rows
    int64_t first_member = 0;           // of the row
    int64_t first_cell = 0;             // of the row
    size_t decoded_begin = 0;           // of the chunk, within the decoded bytes of all
    std::vector<StoredColumn> columns;  // ascending by column
    StoredPart stored;                  // without pointers, `row_cells` and `width`

    zarr::EncodedChunk chunk;
    std::vector<int64_t> chunk_number;
    size_t encoded_begin = 0;  // of the chunk, within the encoded bytes of all
  };

  // Opens the chunks of some rows; all outlive this. Throws DataError if a chunk is absent, or if
  // the layout of the array is not one that StoredPart describes: floats, little endian, the cells
  // of a field one after the other, compressed by Blosc alone.
  EncodedRows(const AnemoiDataset& dataset, const ColumnMaps& maps, std::span<const int64_t> rows);

  // Returns the bytes of the memory that read() fills, 64 unused ones at the end included.
  size_t encoded_bytes() const { return encoded_bytes_; }
  // Returns the bytes of all decoded chunks, each from a multiple of 256 on.
  size_t decoded_bytes() const { return decoded_bytes_; }
  const std::vector<Part>& parts() const { return parts_; }

  // Reads the files into `memory` with this number of threads, the calling one included. Throws
  // DataError naming the file.
  void read(std::byte* memory, int64_t threads) const;
  // Lists the streams of all chunks from what read() has put into `memory`, positions counted in
  // the bytes of all; completes parts(). Throws DataError naming the file if a buffer is damaged,
  // or not of LZ4 streams.
  std::vector<zarr::BloscStream> parse(const std::byte* memory);

 private:
  void add_part(size_t row, const zarr::ChunkPart& place);

  const AnemoiDataset& dataset_;
  const ColumnMaps& maps_;
  const zarr::Array& array_;
  std::vector<Part> parts_;
  size_t encoded_bytes_ = 0, decoded_bytes_ = 0;
};

}  // namespace aifs::data
