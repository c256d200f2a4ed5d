// SPDX-License-Identifier: Apache-2.0
// A forecast as `aifs-train forecast` writes it, a netCDF file or a Zarr folder, open for reading.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/file_io.h"
#include "verify/forecast_source.h"

namespace aifs::verify {

class ForecastReader {
 public:
  // Throws DataError naming the file and what it lacks.
  explicit ForecastReader(const fs::path& path);

  const std::string& path() const { return source_->description().path; }
  int64_t start_s() const { return source_->description().start_s; }
  const std::vector<int64_t>& lead_times_s() const { return source_->description().lead_times_s; }
  const std::vector<std::string>& variables() const { return source_->description().variables; }
  // Of each variable; "": the file does not say.
  const std::vector<std::string>& units() const { return source_->description().units; }
  int64_t num_members() const { return source_->description().num_members; }
  int64_t num_cells() const { return static_cast<int64_t>(latitudes_deg().size()); }
  // Of each cell.
  const std::vector<double>& latitudes_deg() const { return source_->description().latitudes_deg; }
  const std::vector<double>& longitudes_deg() const {
    return source_->description().longitudes_deg;
  }

  // The fields of all members, (E, N); NaN where there is no value. Thread-safe.
  void read(const std::string& variable, size_t lead_time, std::span<float> out) const;

 private:
  std::unique_ptr<ForecastSource> source_;
};

// The forecasts of a folder by the dates that they start from, or one forecast. Throws DataError
// if there is none.
std::vector<fs::path> forecast_files(const fs::path& folder_or_file);

}  // namespace aifs::verify
