// SPDX-License-Identifier: Apache-2.0
// JSON files of a store, read leniently where Python's writers are lax and strictly where a hostile
// file could hurt: bare NaN, Infinity and -Infinity become the texts "NaN", "Infinity",
// "-Infinity"; nesting beyond 200 levels and files beyond 64 MiB are refused.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "data/zarr/store.h"

namespace aifs::zarr {

using Json = nlohmann::ordered_json;

// Throws DataError naming `file` if the text is not JSON.
Json parse_json(std::string_view text, const std::string& file);

// The JSON value of a key; nothing if the key is absent.
std::optional<Json> read_json(const Store& store, const std::string& key);

// A name in quotes, shortened, for messages.
std::string quoted(const std::string& name);

// The value in one line, shortened, for messages.
std::string shown(const Json& value);

}  // namespace aifs::zarr
