// SPDX-License-Identifier: Apache-2.0
#include "data/sources/statistics_file.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/json_read.h"
#include "core/time.h"

namespace aifs::data {

namespace {

using Json = nlohmann::ordered_json;

Json list_of(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values)
    list.push_back(std::isfinite(value) ? Json(value) : Json());
  return list;
}

bool read_list(const Json& json, const char* key, int64_t count, std::vector<double>& out) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array() || found->size() != static_cast<size_t>(count))
    return false;
  for (const Json& value : *found) {
    if (!value.is_number() && !value.is_null()) return false;
    out.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  }
  return true;
}

bool read_statistics(const Json& json, int64_t count, Statistics& s) {
  return json.is_object() && read_list(json, "mean", count, s.mean) &&
         read_list(json, "stdev", count, s.stdev) && read_list(json, "minimum", count, s.minimum) &&
         read_list(json, "maximum", count, s.maximum);
}

}  // namespace

Json to_json(const Statistics& s) {
  return {{"mean", list_of(s.mean)},
          {"stdev", list_of(s.stdev)},
          {"minimum", list_of(s.minimum)},
          {"maximum", list_of(s.maximum)}};
}

std::optional<KeptStatistics> read_statistics_file(const fs::path& path, const Json& of,
                                                   int64_t num_variables) {
  if (!path_exists(path)) return std::nullopt;
  const Json json = Json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("of", Json()) != of) return std::nullopt;
  KeptStatistics kept;
  if (!read_statistics(json.value("statistics", Json()), num_variables, kept.statistics))
    return std::nullopt;
  const Json tendencies = json.value("tendencies", Json::object());
  if (!tendencies.is_object()) return std::nullopt;
  for (const auto& [delta, values] : tendencies.items()) {
    Statistics s;
    if (!read_statistics(values, num_variables, s)) return std::nullopt;
    try {
      kept.tendencies[parse_duration(delta)] = std::move(s);
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  return kept;
}

void write_statistics_file(const fs::path& path, const Json& of, const KeptStatistics& kept) {
  Json json{{"of", of}, {"statistics", to_json(kept.statistics)}, {"tendencies", Json::object()}};
  for (const auto& [delta_s, statistics] : kept.tendencies)
    json["tendencies"][format_duration(delta_s)] = to_json(statistics);
  make_directories(path.parent_path());
  write_file_atomic(path, json.dump(1) + "\n");
}

}  // namespace aifs::data
