// SPDX-License-Identifier: Apache-2.0
// A dataset made of parts of others: some of their dates, variables, members and cells, each at a
// place of its own, values scaled at most. Selections, joins, concatenations, ensembles, grids and
// cutouts are all of this kind. Rows are read in the pieces of the sources, straight to where they
// are wanted; what is not wanted is not read as far as the sources can avoid it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "data/fields/dataset.h"
#include "data/fields/units.h"

namespace aifs::data {

class CombinedDataset : public Dataset {
 public:
  // Describes what a source gives. Empty lists: all of the source, in its order.
  struct Part {
    DatasetPtr source;
    std::vector<int64_t> rows = {};     // (rows) row of the source, or -1: gives nothing then
    std::vector<int64_t> columns = {};  // (V of the source) column, or -1: not used
    std::vector<int64_t> members = {};  // (E of the source) member, or -1: not used
    int64_t first_cell = 0;             // the cells of the part follow each other from here on
    std::vector<int64_t> cells = {};    // cells of the source that are used, ascending
    // (V of the source) what is done to values, in the type in which the source has them; fields
    // are rounded to float32 behind it.
    std::vector<UnitMap> maps = {};
  };

  // `info` describes the whole. At every row that is not missing, the parts must give all of its
  // columns, members and cells once.
  CombinedDataset(DatasetInfo info, std::vector<Part> parts);

  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, NodeRange nodes, std::span<float> out) const override;
  std::unique_ptr<RowReader> open_row(int64_t row, NodeRange nodes) const override;
  std::unique_ptr<RowReader> open_columns(int64_t row, NodeRange nodes,
                                          std::span<const ColumnMap> columns) const override;
  std::vector<std::string> warnings() const override;
  std::vector<std::string> warnings_for(std::span<const int64_t> rows) const override;
  // Returns what the sources say about the row, one after the other.
  std::string remark(int64_t row) const override;
  // Those of the first source, with the variables of all parts.
  nlohmann::ordered_json attributes() const override;

 private:
  int64_t row_of(const Part& part, int64_t row) const;

  DatasetInfo info_;
  std::vector<Part> parts_;
  std::vector<std::vector<int64_t>> sources_;  // of each part: (V) column of the source, or -1
};

// A row that is missing, or not there at all, cannot be read. Throws DataError for the former.
void check_row(const DatasetInfo& info, int64_t row, NodeRange nodes);

}  // namespace aifs::data
