// SPDX-License-Identifier: Apache-2.0
// One row of an Anemoi dataset, opened for reading in pieces: the blocks of its chunks that hold
// what is selected.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "data/fields/dataset.h"
#include "data/fields/field_scatter.h"
#include "data/zarr/array.h"

namespace aifs::data {

// Axes of the array "data" of an Anemoi dataset.
inline constexpr size_t kTime = 0, kVariable = 1, kMember = 2, kCell = 3;

class AnemoiRow : public RowReader {
 public:
  struct Request {
    int64_t stored_row = 0;
    NodeRange nodes;
    int64_t members = 1;
    std::vector<ColumnMap> columns;  // stored variable -> column, ascending by stored variable
    // Told of each chunk that is absent, before it is read as the fill value; may throw.
    std::function<void(std::span<const int64_t> chunk)> on_absent;
  };
  // `array` (T, V, E, N) outlives this. Opens the chunks. Throws DataError.
  AnemoiRow(const zarr::Array& array, Request request);

  size_t num_pieces() const override { return pieces_.size(); }
  void read_piece(size_t piece, FieldSink& sink, ReadScratch& scratch) override;

 private:
  // Describes what a chunk has of the row.
  struct Part {
    zarr::ChunkPart place;
    std::vector<ColumnMap> columns;                 // `source` counted within the chunk
    std::unique_ptr<zarr::ChunkPieces> chunk = {};  // null: absent, or decoded as a whole
    bool is_absent = false;
  };
  struct Piece {
    size_t part = 0, block = 0;
  };
  // Values of one variable and member: items [begin, end) of the chunk, one cell after the other.
  struct Run {
    int64_t begin = 0, end = 0;
    int64_t column = 0, member = 0;
  };

  void add_part(const zarr::ChunkPart& place);
  void add_blocks(size_t part);
  template <class Visit>
  void for_each_run(const Part& part, Visit&& visit) const;
  void put_block(const Part& part, size_t block, FieldSink& sink, ReadScratch& scratch) const;
  void put_whole(const Part& part, FieldSink& sink, ReadScratch& scratch) const;
  void put_fill(const Part& part, FieldSink& sink) const;
  // Gives the run its values: items that are no floats of this machine, `stride` apart.
  void convert(const std::byte* items, int64_t stride, FieldRun& run, ReadScratch& scratch) const;
  // `first` items of the view are before the run.
  void put_items(const zarr::BlockView& view, int64_t first, FieldRun run, FieldSink& sink,
                 ReadScratch& scratch) const;

  const zarr::Array& array_;
  Request request_;
  std::vector<int64_t> strides_;  // items of a chunk between neighbours along each axis
  std::vector<Part> parts_;
  std::vector<Piece> pieces_;
};

// The selected variables of a part of a chunk, `source` counted within the chunk.
std::vector<ColumnMap> columns_in_part(const zarr::Array& array, const zarr::ChunkPart& part,
                                       std::span<const ColumnMap> columns);

}  // namespace aifs::data
