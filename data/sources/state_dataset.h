// SPDX-License-Identifier: Apache-2.0
// A dataset whose states are those of files: its dates that the files have come from there, the
// others from the dataset below, for forcings of times to come.
//
// What the files lack is computed from place and date, or is taken from the dataset where that is
// the same at all dates. Columns that no state needs have the mean of the statistics.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/fields/dataset.h"
#include "data/sources/state_fields.h"

namespace aifs::data {

// Opens a file, whose first bytes tell its kind. Throws ConfigError (`option`) for GRIB where the
// program has no ecCodes, DataError for what is neither netCDF nor GRIB and for damaged files.
std::unique_ptr<StateFile> open_state_file(const std::string& path, const std::string& option);

class StateDataset : public Dataset {
 public:
  // `needed`: columns of states. `files` are of the grid of `dataset`. Throws DataError naming file
  // and cell where one is of another grid, and for fields that two files have.
  StateDataset(DatasetPtr dataset, std::vector<std::unique_ptr<StateFile>> files,
               const std::vector<int64_t>& needed);

  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, NodeRange nodes, std::span<float> out) const override;
  std::unique_ptr<RowReader> open_row(int64_t row, NodeRange nodes) const override;
  std::unique_ptr<RowReader> open_columns(int64_t row, NodeRange nodes,
                                          std::span<const ColumnMap> columns) const override;
  // Names units of files that are others than the dataset's.
  std::vector<std::string> warnings() const override { return warnings_; }

  // Dates of the files, ascending.
  std::vector<int64_t> file_dates() const;
  // Throws DataError naming date and variables unless the files have a whole state.
  void require_state(int64_t date_s) const;

 private:
  class WholeState;
  struct Place {
    size_t file = 0, field = 0;
  };
  using Places = std::map<std::string, Place>;  // by the name of the variable

  void add_file(size_t number);
  void check_grid(const StateFile& file, const StateGrid& grid) const;
  void check_units(const StateFile& file, const StateField& field, int64_t column);
  void make_axis();
  // Names of needed variables that nothing gives at a date of the files.
  std::vector<std::string> lacking(int64_t date_s) const;
  // True for a date of which the files have all that is needed.
  bool is_whole(int64_t date_s) const;
  const Place* find(int64_t date_s, const std::string& name) const;
  bool is_constant(const std::string& name) const;
  // Row of the dataset below, or -1.
  int64_t row_below(int64_t row) const;
  // Reads a column at a date of the files, (E, n).
  void read_column(int64_t date_s, int64_t column, NodeRange nodes, std::span<float> out) const;

  DatasetPtr dataset_;
  std::vector<std::unique_ptr<StateFile>> files_;
  std::vector<bool> is_needed_;       // (V)
  std::map<int64_t, Places> states_;  // by date
  Places constants_;
  DatasetInfo info_;
  std::vector<std::string> warnings_;
};

}  // namespace aifs::data
