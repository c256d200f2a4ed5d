// SPDX-License-Identifier: Apache-2.0
// What training sees of data: rows (dates) of V variables on N grid cells, wherever they come from.
// Free of LibTorch, so that readers can be tested alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/fields/field_scatter.h"
#include "data/fields/field_sink.h"

namespace aifs::data {

// Per variable, over the statistics period of the dataset; population standard deviation.
struct Statistics {
  std::vector<double> mean, stdev, minimum, maximum;  // (V) physical units
};

// Describes what a dataset says of a variable, for comparing it with another of the same name.
// Empty texts and periods: it does not say.
struct VariableKind {
  std::string units, process, level_type;
  std::optional<int64_t> period_s = 0;  // that a value stands for; 0: an instant
};

// Describes what is known of a dataset without reading fields.
struct DatasetInfo {
  std::string name;                    // path or description, for messages
  std::vector<std::string> variables;  // (V) in the order of the last axis of read()
  std::vector<int64_t> dates_s;        // (rows) seconds since 1970 UTC, ascending, equally spaced
  int64_t frequency_s = 0;             // spacing of dates_s
  std::vector<int64_t> missing_rows;   // ascending; read() of these is an error
  std::vector<double> latitudes_deg;   // (N)
  std::vector<double> longitudes_deg;  // (N) as stored: [0, 360) or [-180, 180]
  std::vector<int64_t> field_shape;    // {N}, or {rows, columns} of a two-dimensional field
  std::vector<int64_t> grids;          // cells of each grid, one after the other; empty: one grid
  std::string resolution;              // as JSON; empty: the dataset does not say
  int64_t ensemble_size = 1;           // E
  Statistics statistics;
  std::map<int64_t, Statistics> tendencies;  // by time difference in seconds; may be empty
  // Variables that hold the same fields at all dates as far as the dataset knows, in its order.
  std::vector<std::string> constant_fields;
  std::vector<VariableKind> kinds;  // (V), or empty
  bool is_float64 = false;          // stored so; fields are rounded to float32 when they are read

  int64_t num_rows() const { return static_cast<int64_t>(dates_s.size()); }
  int64_t num_nodes() const { return static_cast<int64_t>(latitudes_deg.size()); }
  int64_t num_variables() const { return static_cast<int64_t>(variables.size()); }
  // Column of a variable. Throws DataError listing near names if there is none.
  int64_t column(const std::string& variable) const;
  // Column of a variable, or -1.
  int64_t find_column(const std::string& variable) const;
};

// Reduces what is known to some rows, ascending and equally spaced, or to some columns.
void keep_rows(std::span<const int64_t> rows, DatasetInfo& info);
void keep_columns(std::span<const int64_t> columns, DatasetInfo& info);
Statistics pick_columns(const Statistics& all, std::span<const int64_t> columns);

// A contiguous range of grid cells, [begin, end).
struct NodeRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual const DatasetInfo& info() const = 0;

  // Fields of one row for some cells: `out` has shape (E, nodes.size(), V), physical units, fp32.
  // Thread-safe. Throws DataError naming file, array and chunk if the data cannot be read or the
  // row is missing.
  virtual void read(int64_t row, NodeRange nodes, std::span<float> out) const = 0;

  // Opens the same row for threads that share its pieces; the dataset outlives the reader.
  // Thread-safe. Throws as read(), here or at the piece. Unless a dataset does better: one piece.
  virtual std::unique_ptr<RowReader> open_row(int64_t row, NodeRange nodes) const;

  // Opens a row for some variables only, which come as other columns: ColumnMap::source is a column
  // of this dataset, ColumnMap::column that of the runs. No source may be named twice.
  virtual std::unique_ptr<RowReader> open_columns(int64_t row, NodeRange nodes,
                                                  std::span<const ColumnMap> columns) const;

  // Returns what a user should hear before the first of some rows is read; by default before any.
  // May look at many files: for one process. Throws DataError for what makes reading pointless.
  virtual std::vector<std::string> warnings() const { return {}; }
  virtual std::vector<std::string> warnings_for(std::span<const int64_t>) const {
    return warnings();
  }

  // The attributes of the files, for other programs; an empty object where there are none.
  virtual nlohmann::ordered_json attributes() const;

  // Returns what is unusual about a row, for a message about its values; "" if nothing is known.
  virtual std::string remark(int64_t) const { return {}; }
};

using DatasetPtr = std::shared_ptr<const Dataset>;

// Reads a row as Dataset::read() does, through the pieces of open_row().
void read_in_pieces(const Dataset& dataset, int64_t row, NodeRange nodes, std::span<float> out);

// Reads some variables of a row, one field after the other: `out` has shape (E, columns, n), where
// the column of each is its number in `columns`.
void read_fields(const Dataset& dataset, int64_t row, NodeRange nodes,
                 std::span<const int64_t> columns, ReadScratch& scratch, float* out);

}  // namespace aifs::data
