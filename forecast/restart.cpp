// SPDX-License-Identifier: Apache-2.0
#include "forecast/restart.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/safetensors.h"

namespace aifs::forecast {

namespace {

std::string input_name(size_t dataset) {
  return concat("inputs.", dataset);
}

}  // namespace

void write_restart(const fs::path& path, const std::string& identity, const Restart& restart) {
  std::vector<SafetensorsItem> items;
  for (size_t d = 0; d < restart.inputs.size(); ++d)
    items.push_back(
        {input_name(d), DType::kU8, {std::ssize(restart.inputs[d])}, restart.inputs[d].data()});
  write_safetensors(path, items,
                    {{"identity", identity},
                     {"steps", std::to_string(restart.steps)},
                     {"files", nlohmann::json(restart.files).dump()}});
}

std::optional<Restart> read_restart(const fs::path& path, const std::string& identity) {
  if (!path_exists(path)) return std::nullopt;
  const SafetensorsFile file(path);
  const auto text = [&](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (text("identity") != identity) return std::nullopt;
  const auto refuse = [&] {
    throw DataError(concat("'", path.string(), "' is not the restart file of a forecast"),
                    "remove it");
  };
  Restart restart;
  const auto steps = nlohmann::json::parse(text("steps"), nullptr, /*allow_exceptions=*/false);
  const auto files = nlohmann::json::parse(text("files"), nullptr, /*allow_exceptions=*/false);
  const auto is_text = [](const nlohmann::json& json) { return json.is_string(); };
  if (!steps.is_number_integer() || !files.is_array() ||
      !std::all_of(files.begin(), files.end(), is_text))
    refuse();
  restart.steps = steps.get<int64_t>();
  restart.files = files.get<std::vector<std::string>>();
  for (size_t d = 0; file.contains(input_name(d)); ++d) {
    const auto bytes = file.at(input_name(d)).bytes;
    restart.inputs.emplace_back(bytes.begin(), bytes.end());
  }
  if (restart.steps < 1 || restart.files.size() != restart.inputs.size()) refuse();
  return restart;
}

}  // namespace aifs::forecast
