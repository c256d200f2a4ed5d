// SPDX-License-Identifier: Apache-2.0
// Fields of GRIB files, editions 1 and 2. Needs ecCodes.
#pragma once

#include <memory>
#include <string>

#include "data/sources/state_fields.h"

namespace aifs::data {

// Looks at every message once. Messages of one field that differ in the number of the member belong
// together, ascending. Throws ConfigError (`option`) where the program has no
// ecCodes, DataError for a truncated file and for a field that is there twice.
std::unique_ptr<StateFile> open_grib_states(const std::string& path, const std::string& option);

}  // namespace aifs::data
