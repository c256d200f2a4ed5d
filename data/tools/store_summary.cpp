// SPDX-License-Identifier: Apache-2.0
#include "data/tools/store_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_io.h"
#include "core/time.h"
#include "data/sources/anemoi_dataset.h"
#include "data/sources/anemoi_metadata.h"
#include "data/sources/statistics_file.h"
#include "data/zarr/compression.h"

namespace aifs::data {

namespace {

using zarr::Json;
using StorePtr = std::shared_ptr<const zarr::Store>;

// Lists what is copied from the attributes as it stands.
constexpr std::array kAttributes{"resolution",
                                 "description",
                                 "licence",
                                 "attribution",
                                 "version",
                                 "uuid",
                                 "statistics_start_date",
                                 "statistics_end_date"};

struct Files {
  int64_t count = 0, bytes = 0;
};

Files files_below(const fs::path& place) {
  Files files;
  std::error_code error;
  if (!fs::is_directory(place, error))
    return {1, static_cast<int64_t>(fs::file_size(place, error))};
  fs::recursive_directory_iterator it(place, error), end;
  for (; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (!it->is_regular_file(gone)) continue;
    const auto bytes = it->file_size(gone);
    if (gone) continue;
    ++files.count;
    files.bytes += static_cast<int64_t>(bytes);
  }
  if (error) throw DataError(concat("cannot list '", place.string(), "': ", error.message()));
  return files;
}

// Dates between the first and the last that are marked as missing, and such that have no row.
void add_dates(const AnemoiMetadata& metadata, Json& json) {
  const DatasetInfo& info = metadata.info;
  Json missing = Json::array(), gaps = Json::array();
  for (const int64_t row : info.missing_rows) {
    const auto at = static_cast<size_t>(row);
    (metadata.stored_rows[at] < 0 ? gaps : missing).push_back(format_date(info.dates_s[at]));
  }
  json["dates"] = {{"count", info.num_rows()},
                   {"first", format_date(info.dates_s.front())},
                   {"last", format_date(info.dates_s.back())},
                   {"frequency", format_duration(info.frequency_s)},
                   {"missing", missing},
                   {"gaps", gaps}};
}

void add_array(const StorePtr& store, const zarr::Array& array, Json& json) {
  const zarr::ArrayMeta& meta = array.meta();
  const StoredMetadata stored = stored_metadata(*store, "data");
  int64_t chunks = 1;
  for (size_t axis = 0; axis < meta.shape.size(); ++axis)
    chunks *= (meta.shape[axis] + meta.chunk.shape[axis] - 1) / meta.chunk.shape[axis];
  json["data"] = {{"dtype", meta.type.name()},
                  {"big_endian", meta.type.big_endian},
                  {"shape", meta.shape},
                  {"chunks", meta.chunk.shape},
                  {"num_chunks", chunks},
                  {"shards", meta.sharding ? Json(meta.sharding->shape) : Json()},
                  {"codec", zarr::describe_codecs(stored.json, stored.format)},
                  {"fill_value", meta.fill.text(meta.type)}};
  int64_t bytes = meta.type.item_bytes;
  for (const int64_t length : meta.shape)
    bytes *= length;
  const Files files = files_below(store->name());
  json["size"] = {{"files", files.count}, {"stored_bytes", files.bytes}, {"decoded_bytes", bytes}};
}

std::string list_text(const Json& list) {
  std::string text;
  for (const Json& element : list)
    text += concat(text.empty() ? "" : ", ", element.get<int64_t>());
  return concat("(", text, ")");
}

// The first few of a list of texts.
std::string some(const Json& list) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(kMost, list.size()); ++i)
    text += concat(i == 0 ? "" : ", ", list[i].get<std::string>());
  if (list.size() > kMost) text += concat(" and ", list.size() - kMost, " more");
  return text;
}

std::string number(const Json& value) {
  if (value.is_null()) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value.get<double>());
  return text;
}

std::string dates_text(const Json& dates) {
  std::string text =
      concat(dates["count"].get<int64_t>(), " from ", dates["first"].get<std::string>(), " to ",
             dates["last"].get<std::string>(), ", every ", dates["frequency"].get<std::string>());
  const Json &missing = dates["missing"], &gaps = dates["gaps"];
  if (!missing.empty()) text += concat("; ", missing.size(), " missing: ", some(missing));
  if (!gaps.empty()) text += concat("; ", gaps.size(), " without a row: ", some(gaps));
  return missing.empty() && gaps.empty() ? text + "; none missing" : text;
}

std::string variables_text(const Json& summary) {
  const Json &names = summary["variables"], &s = summary["statistics"];
  size_t width = 8;
  for (const Json& name : names)
    width = std::max(width, name.get<std::string>().size());
  char line[256];
  std::snprintf(line, sizeof line, "%-*s %13s %13s %13s %13s\n", static_cast<int>(width),
                "variable", "minimum", "mean", "maximum", "stdev");
  std::string text = line;
  const auto is_constant = [&](const std::string& name) {
    const Json& constant = summary["constant_fields"];
    return std::find(constant.begin(), constant.end(), name) != constant.end();
  };
  for (size_t v = 0; v < names.size(); ++v) {
    const auto name = names[v].get<std::string>();
    std::snprintf(line, sizeof line, "%-*.*s %13s %13s %13s %13s%s\n", static_cast<int>(width), 120,
                  name.c_str(), number(s["minimum"][v]).c_str(), number(s["mean"][v]).c_str(),
                  number(s["maximum"][v]).c_str(), number(s["stdev"][v]).c_str(),
                  is_constant(name) ? "  constant" : "");
    text += line;
  }
  return text;
}

}  // namespace

StoredMetadata stored_metadata(const zarr::Store& store, const std::string& array) {
  if (auto json = zarr::read_json(store, array + "/zarr.json"))
    return {3, *json, json->value("attributes", Json::object())};
  auto json = zarr::read_json(store, array + "/.zarray");
  if (!json) throw DataError(concat("'", store.name(), "' has no array '", array, "'"));
  return {2, *json, zarr::read_json(store, array + "/.zattrs").value_or(Json::object())};
}

std::vector<std::string> array_names(const zarr::Store& store) {
  std::vector<std::string> names;
  for (const std::string& name : store.root_names()) {
    if (name.starts_with(".") || name.starts_with("_")) continue;
    if (store.size(name + "/zarr.json") || store.size(name + "/.zarray")) names.push_back(name);
  }
  return names;
}

std::string format_bytes(double bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  for (; bytes >= 1024.0 && unit + 1 < kUnits.size(); ++unit)
    bytes /= 1024.0;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text;
}

Json summarise_store(const StorePtr& store) {
  const zarr::Group group = open_anemoi_group(*store);
  const zarr::Array array(store, "data");
  const AnemoiMetadata metadata = read_anemoi_metadata(store, group, array, false, false);
  const DatasetInfo& info = metadata.info;
  Json json{{"store", info.name}, {"zarr_format", group.format}};
  add_dates(metadata, json);
  json["num_variables"] = info.num_variables();
  json["variables"] = info.variables;
  json["constant_fields"] = info.constant_fields;
  json["members"] = info.ensemble_size;
  json["cells"] = info.num_nodes();
  json["field_shape"] = info.field_shape;
  const auto [south, north] = std::ranges::minmax(info.latitudes_deg);
  const auto [west, east] = std::ranges::minmax(info.longitudes_deg);
  json["area_deg"] = {{"south", south}, {"north", north}, {"west", west}, {"east", east}};
  add_array(store, array, json);
  json["statistics"] = to_json(info.statistics);
  json["tendencies"] = Json::object();
  for (const auto& [delta_s, statistics] : info.tendencies)
    json["tendencies"][format_duration(delta_s)] = to_json(statistics);
  json["attributes"] = Json::object();
  for (const char* name : kAttributes) {
    if (group.attributes.contains(name)) json["attributes"][name] = group.attributes[name];
  }
  json["warnings"] = metadata.warnings;
  if (std::isnan(info.statistics.mean.front()) && !zarr::node_exists(*store, "mean"))
    json["warnings"].push_back(
        "there are no statistics; aifs-train data stats --write computes them");
  return json;
}

std::string summary_text(const Json& summary) {
  const Json &data = summary["data"], &size = summary["size"], &area = summary["area_deg"];
  std::string text;
  const auto line = [&](const std::string& name, const std::string& value) {
    text += concat(name, std::string(12 - std::string_view(name).size(), ' '), value, "\n");
  };
  line("store", summary["store"].get<std::string>());
  line("format", concat("Zarr ", summary["zarr_format"].get<int>()));
  line("dates", dates_text(summary["dates"]));
  line("cells", concat(summary["cells"].get<int64_t>(), " as ", list_text(summary["field_shape"]),
                       ", latitudes ", number(area["south"]), " to ", number(area["north"]),
                       ", longitudes ", number(area["west"]), " to ", number(area["east"])));
  line("members", concat(summary["members"].get<int64_t>()));
  line("data",
       concat(data["dtype"].get<std::string>(),
              data["big_endian"].get<bool>() ? ", big endian" : "", " ", list_text(data["shape"])));
  line("chunks",
       concat(list_text(data["chunks"]), ", ", data["num_chunks"].get<int64_t>(),
              data["shards"].is_null() ? "" : concat(", shards ", list_text(data["shards"])), "; ",
              data["codec"].get<std::string>(), "; fill value ",
              data["fill_value"].get<std::string>()));
  const auto stored = size["stored_bytes"].get<double>(),
             decoded = size["decoded_bytes"].get<double>();
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.2f", decoded / std::max(stored, 1.0));
  line("size", concat(format_bytes(stored), " in ", size["files"].get<int64_t>(), " files, ",
                      format_bytes(decoded), " decoded: ", ratio, " times as much"));
  const Json& attributes = summary["attributes"];
  for (const auto& [name, value] : attributes.items()) {
    if (name.starts_with("statistics_") || value.is_null()) continue;
    line(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  const Json start = attributes.value("statistics_start_date", Json());
  const Json end = attributes.value("statistics_end_date", Json());
  if (start.is_string() && end.is_string())
    line("statistics", concat("of ", start.get<std::string>(), " to ", end.get<std::string>()));
  std::string deltas;
  for (const auto& [delta, values] : summary["tendencies"].items())
    deltas += concat(deltas.empty() ? "" : ", ", delta);
  line("tendencies", deltas.empty() ? "none" : deltas);
  line("variables", concat(summary["num_variables"].get<int64_t>()));
  text += variables_text(summary);
  for (const Json& warning : summary["warnings"])
    text += concat("warning: ", warning.get<std::string>(), "\n");
  return text;
}

}  // namespace aifs::data
