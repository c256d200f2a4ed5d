// SPDX-License-Identifier: Apache-2.0
// What an Anemoi dataset says of itself: attributes, dates, coordinates and statistics of a gridded
// Zarr group, checked against each other and against the shape of "data" (T, V, E, N).
//
// Everything but data, dates, latitudes, longitudes and the four statistics is optional; unknown
// attributes and arrays are ignored. `shape`, `chunks` and `dtype` among the attributes are stale
// after a copy and never looked at. Variable names are names, never paths.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/fields/dataset.h"
#include "data/zarr/array.h"
#include "data/zarr/node.h"

namespace aifs::data {

struct AnemoiMetadata {
  DatasetInfo info;                   // of the whole store
  std::vector<int64_t> stored_rows;   // (rows) row of "data", -1 where nothing is stored
  std::vector<std::string> warnings;  // of arrays whose chunks are absent
};

// The root group. Throws DataError if there is none, if its layout is not gridded, and if the
// dataset is unfinished.
zarr::Group open_anemoi_group(const zarr::Store& store);

// Reads everything but the fields. `data`: the array "data". `strict`: absent chunks are errors,
// else they hold the fill value of their array. Throws DataError naming the file or attribute that
// is wrong. Statistics may hold NaN or zeros: that is for the normaliser to refuse. Where they are
// not there, that is an error unless `needs_statistics` is false: they are NaN then.
AnemoiMetadata read_anemoi_metadata(const std::shared_ptr<const zarr::Store>& store,
                                    const zarr::Group& group, const zarr::Array& data,
                                    bool strict = false, bool needs_statistics = true);

}  // namespace aifs::data
