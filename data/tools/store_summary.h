// SPDX-License-Identifier: Apache-2.0
// What is in an Anemoi dataset on disk, without reading its fields.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "data/zarr/json_text.h"
#include "data/zarr/store.h"

namespace aifs::data {

// Format, dates, variables, chunks, sizes and statistics as JSON. Looks at the size of every file.
// Throws DataError.
zarr::Json summarise_store(const std::shared_ptr<const zarr::Store>& store);

// Returns the summary for people, as lines.
std::string summary_text(const zarr::Json& summary);

// The metadata of an array as they stand in the store (.zarray or zarr.json), its own attributes,
// and which format they are. Throws DataError if there is no such array.
struct StoredMetadata {
  int format = 2;
  zarr::Json json, attributes;
};
StoredMetadata stored_metadata(const zarr::Store& store, const std::string& array);

// Names of the arrays directly below the root that are not hidden by a leading "_" or ".", sorted.
std::vector<std::string> array_names(const zarr::Store& store);

// "12.3 MiB".
std::string format_bytes(double bytes);

}  // namespace aifs::data
