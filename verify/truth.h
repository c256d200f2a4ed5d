// SPDX-License-Identifier: Apache-2.0
// Fields of a dataset at the cells and of the variables of forecasts.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/fields/dataset.h"
#include "verify/forecast_reader.h"

namespace aifs::verify {

// Positions in the dataset of the cells of a forecast. Throws DataError naming the first that the
// dataset has not.
std::vector<int64_t> cells_in(const data::DatasetInfo& info, const ForecastReader& forecast);

// Chosen cells of chosen variables of a dataset; the dataset outlives it. Immutable.
class DatasetCells {
 public:
  // Throws DataError if the dataset lacks a cell of the forecast, or a variable.
  DatasetCells(const data::Dataset& dataset, const ForecastReader& forecast,
               const std::vector<std::string>& variables);

  const data::Dataset& dataset() const { return dataset_; }
  size_t num_variables() const { return columns_.size(); }
  size_t num_cells() const { return cells_.size(); }
  const std::vector<int64_t>& cells() const { return cells_; }

  // The first member of a row, (variables, N). Thread-safe, with a scratch of its own for each
  // thread. Throws DataError.
  std::vector<float> read(int64_t row, data::ReadScratch& scratch) const;

 private:
  const data::Dataset& dataset_;
  std::vector<int64_t> cells_, columns_;
};

// Fields by date. Keeps what was read last: forecasts from dates near each other share it.
class Truth {
 public:
  // `forecast` has the cells, which are those of all. Throws DataError as DatasetCells.
  Truth(const data::Dataset& dataset, const ForecastReader& forecast,
        const std::vector<std::string>& variables);

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
