// SPDX-License-Identifier: Apache-2.0
// Fields of a dataset on the regular grid of forecasts that `forecast --grid` has turned.
#pragma once

#include <cstdint>
#include <string>

#include "data/fields/dataset.h"
#include "verify/forecast_reader.h"
#include "verify/truth.h"

namespace aifs::app {

// Returns a map without `apply` where the forecast has cells of the dataset, or has no regular
// grid: whether they fit is for verify::DatasetCells to say. `interpolation` is "conservative" or
// "nearest", as for forecasts; `threads` do not change the bits. Throws ConfigError (path "--grid")
// where the dataset's cells allow no conservative means.
verify::FieldMap truth_map(const data::DatasetInfo& info, const verify::ForecastReader& forecast,
                           const std::string& interpolation, int64_t threads);

}  // namespace aifs::app
