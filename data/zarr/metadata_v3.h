// SPDX-License-Identifier: Apache-2.0
// Metadata of Zarr format 3 ("zarr.json"): regular grids; the codecs transpose, bytes,
// sharding_indexed (one level), blosc, zstd, gzip, crc32c; numpy's dates as zarr-python writes
// them. Source: zarr-specs, core v3.1.
#pragma once

#include "data/zarr/array_meta.h"

namespace aifs::zarr {

// Throws DataError naming `file` and the member that is wrong.
ArrayMeta parse_array_v3(const Json& json, const std::string& file);

// The attributes of a group node; an empty object if it has none.
Json parse_group_v3(const Json& json, const std::string& file);

}  // namespace aifs::zarr
