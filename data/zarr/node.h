// SPDX-License-Identifier: Apache-2.0
// What lies at a path of a hierarchy, in either format: zarr.json is looked for first, then
// .zgroup and .zarray. Consolidated metadata are not used.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "data/zarr/array_meta.h"
#include "data/zarr/store.h"

namespace aifs::zarr {

struct Group {
  int format = 2;
  std::string attributes_file;  // for messages
  Json attributes;              // an object
};

// The group at the root of a store; nothing if there is none.
std::optional<Group> read_root_group(const Store& store);

// The array at a path such as "data"; nothing if there is none.
std::optional<ArrayMeta> read_array_meta(const Store& store, const std::string& path);

// True if there is a group or an array at a path.
bool node_exists(const Store& store, const std::string& path);

}  // namespace aifs::zarr
