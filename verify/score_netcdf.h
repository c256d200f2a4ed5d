// SPDX-License-Identifier: Apache-2.0
// Scores as a netCDF file, for xarray and others: figures by variable, lead time, region and
// season.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "core/file_io.h"
#include "verify/verification.h"

namespace aifs::verify {

// Writes the rows of score_rows(): dimensions variable, lead_time, region, and season if there are
// several, with coordinates; each figure in fp64, NaN where there is none; rank_histogram with a
// last dimension rank; figures of thresholds, called threshold_ets and so on, with the dimension
// event in the place of variable, whose event_variable and event_threshold say what it is. Throws
// Error naming the file.
void write_score_netcdf(const fs::path& path, const Verification& verification,
                        const std::vector<nlohmann::ordered_json>& rows);

}  // namespace aifs::verify
