// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/node.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "data/zarr/metadata_v2.h"
#include "data/zarr/metadata_v3.h"

namespace aifs::zarr {

std::optional<Group> read_root_group(const Store& store) {
  Group group;
  if (const auto json = read_json(store, "zarr.json")) {
    group.format = 3;
    group.attributes_file = store.path_of("zarr.json");
    group.attributes = parse_group_v3(*json, group.attributes_file);
    return group;
  }
  const auto json = read_json(store, ".zgroup");
  if (!json) return std::nullopt;
  check_group_v2(*json, store.path_of(".zgroup"));
  group.attributes_file = store.path_of(".zattrs");
  group.attributes = read_json(store, ".zattrs").value_or(Json::object());
  if (!group.attributes.is_object()) {
    throw DataError(concat("'", group.attributes_file, "' does not hold a JSON object"));
  }
  return group;
}

std::optional<ArrayMeta> read_array_meta(const Store& store, const std::string& path) {
  const std::string key_v3 = path + "/zarr.json", key_v2 = path + "/.zarray";
  if (const auto json = read_json(store, key_v3)) {
    return parse_array_v3(*json, store.path_of(key_v3));
  }
  if (const auto json = read_json(store, key_v2)) {
    return parse_array_v2(*json, store.path_of(key_v2));
  }
  return std::nullopt;
}

bool node_exists(const Store& store, const std::string& path) {
  for (const char* file : {"/zarr.json", "/.zgroup", "/.zarray"}) {
    if (store.size(path + file)) return true;
  }
  return false;
}

}  // namespace aifs::zarr
