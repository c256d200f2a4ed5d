// SPDX-License-Identifier: Apache-2.0
// Configurations of Anemoi's as users dump them, and changes of them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

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

// The ensemble's configuration with the values at some JSON pointers replaced.
inline anemoi::Imported changed(const std::vector<std::pair<std::string, anemoi::Json>>& changes) {
  anemoi::Json tree = json_config();
  for (const auto& [pointer, value] : changes)
    tree[anemoi::Json::json_pointer(pointer)] = value;
  return imported(tree);
}

// The ensemble's configuration with two datasets, era5 and cerra, that are alike.
inline anemoi::Json two_datasets() {
  anemoi::Json tree = json_config();
  for (const char* section :
       {"/data", "/dataloader/training", "/dataloader/validation", "/training/training_loss",
        "/training/scalers", "/training/variable_groups"}) {
    anemoi::Json& datasets = tree[anemoi::Json::json_pointer(std::string(section) + "/datasets")];
    const anemoi::Json one = datasets["data"];
    datasets = {{"era5", one}, {"cerra", one}};
  }
  anemoi::Json& nodes = tree["graph"]["nodes"];
  nodes["era5"] = nodes["cerra"] = nodes["data"];
  nodes.erase("data");
  anemoi::Json& edges = tree["graph"]["edges"];
  edges.push_back(edges[0]);
  edges.push_back(edges[1]);
  edges[0]["source_name"] = edges[1]["target_name"] = "era5";
  edges[2]["source_name"] = edges[3]["target_name"] = "cerra";
  return tree;
}

}  // namespace aifs::test
