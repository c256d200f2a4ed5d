// SPDX-License-Identifier: Apache-2.0
// What is read of a forecast, whatever its format.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/file_io.h"

namespace aifs::verify {

// Hints of errors about files that are none.
inline constexpr const char* kForecastHint = "name files that `aifs-train forecast` has written";

struct ForecastDescription {
  std::string path;
  int64_t start_s = 0;
  std::vector<int64_t> lead_times_s;
  std::vector<std::string> variables;
  int64_t num_members = 1;
  std::vector<double> latitudes_deg, longitudes_deg;  // of each cell
  std::vector<std::string> units = {};                // of each variable; "": the file does not say
};

class ForecastSource {
 public:
  virtual ~ForecastSource() = default;

  virtual const ForecastDescription& description() const = 0;
  // The fields of all members, (E, N); NaN where there is no value. `variable` is one of the
  // description. Thread-safe. Throws DataError naming the file.
  virtual void read(const std::string& variable, size_t lead_time, std::span<float> out) const = 0;
};

// Throw DataError naming the file and what it lacks.
std::unique_ptr<ForecastSource> open_netcdf_forecast(const fs::path& path);
std::unique_ptr<ForecastSource> open_zarr_forecast(const fs::path& path);

}  // namespace aifs::verify
