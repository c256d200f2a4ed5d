// SPDX-License-Identifier: Apache-2.0
// Fields of netCDF files that follow the CF conventions, files of forecasts among them.
#pragma once

#include <memory>
#include <string>

#include "data/sources/state_fields.h"

namespace aifs::data {

// Throws DataError naming file and variable for what cannot be understood.
std::unique_ptr<StateFile> open_netcdf_states(const std::string& path);

}  // namespace aifs::data
