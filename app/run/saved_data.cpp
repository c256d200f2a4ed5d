// SPDX-License-Identifier: Apache-2.0
#include "app/run/saved_data.h"

#include <nlohmann/json.hpp>

#include "core/check.h"

namespace aifs::app {

namespace {

// Reads the records of a run of several datasets; none where the JSON has no such key.
std::map<std::string, data::DataRecord> named_records(const config::Json& json,
                                                      const std::string& file) {
  std::map<std::string, data::DataRecord> records;
  if (!json.is_object() || !json.contains(kDatasetsKey)) return records;
  if (!json.at(kDatasetsKey).is_object())
    throw DataError(concat("'", file, "': \"", kDatasetsKey, "\" is no object of datasets"));
  for (const auto& [name, record] : json.at(kDatasetsKey).items())
    records[name] = data::data_record_from_json(record, file);
  return records;
}

}  // namespace

SavedData saved_data(WeightUse use, const train::CheckpointInfo& checkpoint) {
  SavedData saved{.use = use, .checkpoint = checkpoint.path.string()};
  if (checkpoint.meta.data_json.empty()) return saved;
  const auto times = [&](const char* key) {
    const config::Json config =
        config::Json::parse(checkpoint.meta.config_json, nullptr, /*allow_exceptions=*/false);
    const config::Json::json_pointer pointer(concat("/data/", key));
    const bool is_there = config.is_object() && config.contains(pointer);
    return is_there && config[pointer].is_number_integer() ? config[pointer].get<int64_t>() : 1;
  };
  saved.times_in = times("multistep_input");
  saved.times_out = times("multistep_output");
  const std::string manifest = (checkpoint.path / "manifest.json").string();
  const config::Json json = config::Json::parse(checkpoint.meta.data_json);
  saved.datasets = named_records(json, manifest);
  if (!json.is_object() || !json.contains(kDatasetsKey))
    saved.record = data::data_record_from_json(json, manifest);
  return saved;
}

std::string to_text(const std::optional<SavedData>& saved) {
  if (!saved) return "";
  config::Json json{{"use", static_cast<int>(saved->use)},
                    {"checkpoint", saved->checkpoint},
                    {"times_in", saved->times_in},
                    {"times_out", saved->times_out}};
  if (saved->record) json["record"] = data::to_json(*saved->record);
  for (const auto& [name, record] : saved->datasets)
    json[kDatasetsKey][name] = data::to_json(record);
  return json.dump();
}

std::optional<SavedData> saved_data_from_text(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const config::Json json = config::Json::parse(text);
  SavedData saved{.use = static_cast<WeightUse>(json.at("use").get<int>()),
                  .checkpoint = json.at("checkpoint").get<std::string>(),
                  .times_in = json.at("times_in").get<int64_t>(),
                  .times_out = json.at("times_out").get<int64_t>()};
  if (json.contains("record"))
    saved.record = data::data_record_from_json(json.at("record"), saved.checkpoint);
  saved.datasets = named_records(json, saved.checkpoint);
  return saved;
}

}  // namespace aifs::app
