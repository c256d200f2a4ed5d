// SPDX-License-Identifier: Apache-2.0
// Configurations of Anemoi's as users dump them, and changes of them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "anemoi/document.h"
#include "anemoi/training_config.h"
#include "tests/support/paths.h"

namespace aifs::test {

inline std::filesystem::path anemoi_configs() {
  return source_folder() / "tests/anemoi/configs";
}

inline anemoi::Json anemoi_config(const std::string& file) {
  return anemoi::read_document(anemoi_configs() / file);
}

// The ensemble's configuration is JSON: it can be read without yaml-cpp.
inline anemoi::Json json_config() {
  return anemoi_config("ensemble_crps.json");
}

inline anemoi::Imported imported(const anemoi::Json& tree) {
  return anemoi::import_training_config(tree, "test");
}

// The value at a JSON pointer of the translation; null if there is none.
inline anemoi::Json value_at(const anemoi::Imported& result, const std::string& pointer) {
  const anemoi::Json::json_pointer place(pointer);
  return result.config().contains(place) ? result.config().at(place) : anemoi::Json();
}

// Returns what is said of a key; null if nothing.
inline const anemoi::Remark* remark_on(const anemoi::Imported& result, const std::string& path) {
  for (const anemoi::Remark& remark : result.remarks)
    if (remark.path == path) return &remark;
  return nullptr;
}

inline bool is_refused(const anemoi::Imported& result, const std::string& path) {
  const anemoi::Remark* remark = remark_on(result, path);
  return remark && remark->verdict == anemoi::Verdict::kNotHonoured;
}

}  // namespace aifs::test
