// SPDX-License-Identifier: Apache-2.0
// Forecast files as `aifs-train forecast` writes them, of one variable "u_500" on four cells.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/netcdf_writer.h"

namespace aifs::test {

struct ForecastSpec {
  std::string start = "2020-01-02 00:00:00";
  std::vector<double> lead_times_s{21600, 43200};
  std::vector<double> latitudes{60.0, 20.0, -30.0, -70.0}, longitudes{0.0, 100.0, 200.0, 300.0};
  size_t members = 1;
  std::vector<double> values = {};  // (lead times, members, cells)
};

inline void write_forecast(const std::filesystem::path& path, const ForecastSpec& spec) {
  NetcdfWriter file(path);
  write_coordinate(file, "time", "seconds since " + spec.start, spec.lead_times_s);
  std::vector<std::string> dimensions{"time"};
  if (spec.members > 1) {
    file.dimension("member", spec.members);
    dimensions.push_back("member");
  }
  file.dimension("cell", spec.latitudes.size());
  dimensions.push_back("cell");
  file.variable("latitude", "f8", {"cell"}, {}, spec.latitudes);
  file.variable("longitude", "f8", {"cell"}, {}, spec.longitudes);
  file.variable("u_500", "f4", dimensions, {}, spec.values);
}

}  // namespace aifs::test
