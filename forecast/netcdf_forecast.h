// SPDX-License-Identifier: Apache-2.0
// Forecasts as netCDF-4 files that follow the CF conventions 1.8: one file for each start date, its
// axis `time` the dates of validity.
//
//   time(time)               seconds since the start
//   forecast_reference_time  the start; lead_time(time) hours after it
//   member(member)           of ensembles
//   latitude, longitude      axes where rows and columns of cells are a regular grid; else values
//                            of each cell: (cell), or (y, x) of two-dimensional fields
//   <variable>(time, [member,] cell)
//
// Source: cfconventions.org, sections 4.4, 5.1-5.3 and 9.
#pragma once

#include <memory>

#include "forecast/forecast_file.h"

namespace aifs::forecast {

// `compression`: 0 (none) to 9 of deflate. The file is written beside `path`, under a name of its
// own, and renamed by finish(). Throws Error naming the file if it cannot be written.
std::unique_ptr<ForecastFile> create_netcdf_forecast(const fs::path& path,
                                                     ForecastContents contents, int compression);

// Returns the identity that a file was written with; empty for a file of another program. Throws
// DataError naming the file if it cannot be read.
std::string forecast_identity(const fs::path& path);

}  // namespace aifs::forecast
