// SPDX-License-Identifier: Apache-2.0
// A reference case on disk: `<name>.json` (configuration and scalars) and, if it exists, the
// tensors in `<name>.safetensors` and `<name>.f64.safetensors` beside it.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/safetensors.h"

namespace aifs::conformance {

using Json = nlohmann::ordered_json;

struct CaseFile {
  fs::path json_path;
  std::string name;  // file name without .json
  Json json;

  // Opens <name>.json. Throws DataError if it is not JSON.
  explicit CaseFile(const fs::path& path);

  // The tensors; throws DataError if the file is missing.
  SafetensorsFile tensors() const;
  // The float64 twin, if there is one.
  std::optional<fs::path> f64_path() const;
};

// Throws NotUnderstood unless a case is an object: where a text stands for it the package refuses
// what the case does not describe.
void require_described(const Json& one);

// True if the package refuses what a case describes: it says so under "error", or a text stands
// where the key `result` has the results of other cases.
bool package_refuses(const Json& one, const char* result);

// A list of texts.
std::vector<std::string> texts(const Json& json);

// Throws NotSupported naming the first key of `object` that is not among `known`.
void require_known_keys(const Json& object, std::initializer_list<std::string_view> known);

}  // namespace aifs::conformance
