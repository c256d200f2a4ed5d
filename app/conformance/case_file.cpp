// SPDX-License-Identifier: Apache-2.0
#include "app/conformance/case_file.h"

#include <algorithm>

#include "app/conformance/report.h"

namespace aifs::conformance {

namespace {

// Python writes NaN for a number that is none; JSON has only null for it.
std::string without_nan(std::string text) {
  const std::string nan = ": NaN";
  for (size_t at = text.find(nan); at != std::string::npos; at = text.find(nan, at))
    text.replace(at, nan.size(), ": null");
  return text;
}

}  // namespace

CaseFile::CaseFile(const fs::path& path) : json_path(path), name(path.stem().string()) {
  json = Json::parse(without_nan(read_file(path)), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) throw DataError(concat("'", path.string(), "' is not JSON"));
}

SafetensorsFile CaseFile::tensors() const {
  return SafetensorsFile(json_path.parent_path() / (name + ".safetensors"));
}

std::optional<fs::path> CaseFile::f64_path() const {
  const fs::path path = json_path.parent_path() / (name + ".f64.safetensors");
  if (!fs::exists(path)) return std::nullopt;
  return path;
}

void require_known_keys(const Json& object, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw NotSupported(concat("option '", key, "'"));
    }
  }
}

}  // namespace aifs::conformance
