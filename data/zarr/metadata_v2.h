// SPDX-License-Identifier: Apache-2.0
// Array metadata of Zarr format 2 (".zarray"). Unknown members are ignored; filters, structured and
// text types are refused. Source: zarr-specs, v2.0.
#pragma once

#include "data/zarr/array_meta.h"

namespace aifs::zarr {

// Throws DataError naming `file` and the member that is wrong.
ArrayMeta parse_array_v2(const Json& json, const std::string& file);

// Checks that a ".zgroup" is one of format 2.
void check_group_v2(const Json& json, const std::string& file);

}  // namespace aifs::zarr
