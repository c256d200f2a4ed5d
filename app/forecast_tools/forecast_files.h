// SPDX-License-Identifier: Apache-2.0
// The files of `aifs-train forecast`: their names, format, and what is in them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/forecast_tools/forecast_options.h"
#include "app/run/wiring.h"
#include "core/file_io.h"
#include "forecast/cell_map.h"
#include "forecast/forecast_run.h"

namespace aifs::app {

// Refers to its arguments, which outlive it.
class ForecastFiles {
 public:
  // `model`: which weights, for people. Ranks that write make the weights of another grid. Throws
  // ConfigError for variables that the network does not predict, and for cells, parameters and keys
  // that files of the format cannot have.
  ForecastFiles(const Run& run, const forecast::ForecastSetup& setup,
                const ForecastCommand& command, std::string model);

  // Positions among the outputs of each dataset that are written; none: the dataset has no files.
  const std::vector<std::vector<int64_t>>& outputs() const { return outputs_; }
  bool are_written(size_t dataset) const { return !outputs_[dataset].empty(); }
  // Each of several datasets has a folder of its own.
  fs::path path_of(int64_t date_s, size_t dataset) const;
  // Reads what a file says that it was made of. Throws DataError.
  std::string identity_in(const fs::path& path) const;
  // Begins a file, or goes on with one. `identity` is what identity_in() will return.
  std::shared_ptr<forecast::ForecastFile> create(int64_t date_s, size_t dataset,
                                                 const std::string& identity,
                                                 forecast::PartialFile partial) const;

 private:
  void choose_outputs();
  void make_maps();
  // Describes fields on the cells of the model.
  forecast::ForecastContents contents(int64_t date_s, size_t dataset) const;

  const Run& run_;
  const forecast::ForecastSetup& setup_;
  const ForecastCommand& command_;
  std::string model_;
  forecast::GribOptions grib_;
  std::vector<std::vector<int64_t>> outputs_;
  std::vector<std::shared_ptr<const forecast::CellMap>> maps_;  // of each dataset, or null
};

// How far the forecasts of a command go. Throws ConfigError.
int64_t lead_time_s(const ForecastCommand& command);

}  // namespace aifs::app
