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

// Throws NotSupported naming the first key of `object` that is not among `known`.
void require_known_keys(const Json& object, std::initializer_list<std::string_view> known);

}  // namespace aifs::conformance
