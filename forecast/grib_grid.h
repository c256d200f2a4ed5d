// SPDX-License-Identifier: Apache-2.0
// Grids as GRIB 2 describes them.
#pragma once

#include "data/sources/grib_message.h"
#include "forecast/cell_rows.h"

namespace aifs::forecast {

// Writes the grid into a message of edition 2. One without rows becomes an unstructured grid, of
// which a message says no more than the number of its cells.
void set_grid(const CellRows& cells, data::GribMessage& message);

}  // namespace aifs::forecast
