// SPDX-License-Identifier: Apache-2.0
// Forecasts as Anemoi datasets (Zarr 2): a folder for each start date, whose dates are those of
// validity. One chunk for each date and member, compressed with Blosc lz4: what costs least time.
// Statistics are those of the forecast.
#pragma once

#include <memory>

#include "forecast/forecast_file.h"

namespace aifs::forecast {

// Dates of a dataset are equally spaced, so lead times are. The folder is written beside `path`,
// under a name of its own, and renamed by finish(). Throws Error naming the folder.
std::unique_ptr<ForecastFile> create_zarr_forecast(const fs::path& path, ForecastContents contents);

// As forecast_identity() of a file.
std::string zarr_forecast_identity(const fs::path& path);

}  // namespace aifs::forecast
