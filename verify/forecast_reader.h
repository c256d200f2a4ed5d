// SPDX-License-Identifier: Apache-2.0
// A forecast file as `aifs-train forecast` writes it, open for reading.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/file_io.h"
#include "data/sources/netcdf_file.h"

namespace aifs::verify {

class ForecastReader {
 public:
  // Throws DataError naming the file and what it lacks.
  explicit ForecastReader(const fs::path& path);

  const std::string& path() const { return file_.path(); }
  int64_t start_s() const { return start_s_; }
  const std::vector<int64_t>& lead_times_s() const { return lead_times_s_; }
  const std::vector<std::string>& variables() const { return variables_; }
  int64_t num_members() const { return num_members_; }
  int64_t num_cells() const { return static_cast<int64_t>(latitudes_deg_.size()); }
  // Of each cell.
  const std::vector<double>& latitudes_deg() const { return latitudes_deg_; }
  const std::vector<double>& longitudes_deg() const { return longitudes_deg_; }

  // The fields of all members, (E, N); NaN where there is no value.
  void read(const std::string& variable, size_t lead_time, std::span<float> out) const;

 private:
  const data::NetcdfVariable& find(const std::string& name) const;
  void read_times();
  void read_cells();

  data::NetcdfFile file_;
  int64_t start_s_ = 0;
  std::vector<int64_t> lead_times_s_;
  std::vector<std::string> variables_;
  int64_t num_members_ = 1;
  std::vector<double> latitudes_deg_, longitudes_deg_;
};

// The forecast files of a folder by the dates that they start from, or one file. Throws DataError
// if there is none.
std::vector<fs::path> forecast_files(const fs::path& folder_or_file);

}  // namespace aifs::verify
