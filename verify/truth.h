// SPDX-License-Identifier: Apache-2.0
// Fields of a dataset at the cells and of the variables of forecasts.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/fields/dataset.h"
#include "verify/forecast_reader.h"

namespace aifs::verify {

// Positions in the dataset of the cells of a forecast. Throws DataError naming the first that the
// dataset has not.
std::vector<int64_t> cells_in(const data::DatasetInfo& info, const ForecastReader& forecast);

// Turns a field of a dataset, one value a cell, into one on other cells.
struct FieldMap {
  std::string name;
  std::function<void(std::span<const float> from, std::span<float> to)> apply;  // thread-safe

  explicit operator bool() const { return static_cast<bool>(apply); }
};

// Chosen cells of chosen variables of a dataset, or what a map makes of all cells; the dataset
// outlives it. Immutable.
class DatasetCells {
 public:
  // A map gives the cells of the forecast. Throws DataError if without one the dataset lacks a cell
  // of the forecast, or a variable.
  DatasetCells(const data::Dataset& dataset, const ForecastReader& forecast,
               const std::vector<std::string>& variables, FieldMap map = {});

  const data::Dataset& dataset() const { return dataset_; }
  size_t num_variables() const { return columns_.size(); }
  size_t num_cells() const { return num_cells_; }
  // Positions in the dataset; none with a map.
  const std::vector<int64_t>& cells() const { return cells_; }
  // Of the map; "": there is none.
  const std::string& map_name() const { return map_.name; }

  // The first member of a row, (variables, N). Thread-safe, with a scratch of its own for each
  // thread. Throws DataError.
  std::vector<float> read(int64_t row, data::ReadScratch& scratch) const;

 private:
  const data::Dataset& dataset_;
  std::vector<int64_t> cells_, columns_;
  size_t num_cells_;
  FieldMap map_;
};

// Fields by date. Keeps what was read last: forecasts from dates near each other share it.
class Truth {
 public:
  // `forecast` has the cells, which are those of all. Throws DataError as DatasetCells.
  Truth(const data::Dataset& dataset, const ForecastReader& forecast,
        const std::vector<std::string>& variables, FieldMap map = {});

  const DatasetCells& cells() const { return cells_; }
  // (variables, N); null if the dataset has no such date. Throws DataError. Not thread-safe.
  std::shared_ptr<const std::vector<float>> at(int64_t date_s);
  // Throws DataError naming both files if the cells of a forecast are others.
  void check_cells(const ForecastReader& forecast) const;

 private:
  DatasetCells cells_;
  std::string path_;  // of the forecast that has the cells
  std::vector<double> latitudes_deg_, longitudes_deg_;
  data::ReadScratch scratch_;
  std::map<int64_t, std::shared_ptr<const std::vector<float>>> kept_;
  std::deque<int64_t> order_;  // of those that are kept, oldest first
};

}  // namespace aifs::verify
