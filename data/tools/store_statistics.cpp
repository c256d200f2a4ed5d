// SPDX-License-Identifier: Apache-2.0
#include "data/tools/store_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_io.h"
#include "core/time.h"
#include "data/fields/moments.h"
#include "data/fields/selection.h"
#include "data/sources/anemoi_metadata.h"
#include "data/zarr/array_writer.h"

namespace aifs::data {

namespace {

using zarr::Json;
using StorePtr = std::shared_ptr<const zarr::Store>;

constexpr std::array<std::pair<const char*, std::vector<double> Statistics::*>, 4> kParts{
    {{"mean", &Statistics::mean},
     {"stdev", &Statistics::stdev},
     {"minimum", &Statistics::minimum},
     {"maximum", &Statistics::maximum}}};

// A date among the attributes; nothing if there is none or it is no date.
std::optional<int64_t> date_attribute(const zarr::Group& group, const char* name) {
  const Json value = group.attributes.value(name, Json());
  if (!value.is_string()) return std::nullopt;
  try {
    return parse_date(value.get<std::string>());
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Rows [first, end) of the statistics.
std::pair<int64_t, int64_t> period_rows(const zarr::Group& group, const DatasetInfo& info,
                                        const StatisticsOptions& options) {
  const std::vector<int64_t>& dates_s = info.dates_s;
  int64_t first_s = date_attribute(group, "statistics_start_date").value_or(dates_s.front());
  int64_t last_s =
      date_attribute(group, "statistics_end_date").value_or(default_statistics_end(dates_s));
  const auto chosen = [&](const std::string& start, const std::string& end) {
    DatasetOptions period;
    period.start = start;
    period.end = end;
    period.start_path = "--start";
    period.end_path = "--end";
    return select_rows(dates_s, info.frequency_s, period);
  };
  if (!options.start.empty())
    first_s = dates_s[static_cast<size_t>(chosen(options.start, "").front())];
  if (!options.end.empty()) last_s = dates_s[static_cast<size_t>(chosen("", options.end).back())];
  const int64_t first = std::ranges::lower_bound(dates_s, first_s) - dates_s.begin();
  const int64_t end = std::ranges::upper_bound(dates_s, last_s) - dates_s.begin();
  if (first < end) return {first, end};
  throw DataError(concat("'", info.name, "': the period of its statistics, ", format_date(first_s),
                         " to ", format_date(last_s), ", has none of its dates"),
                  "name another with --start and --end");
}

std::vector<int64_t> wanted_deltas(const DatasetInfo& info, const StatisticsOptions& options) {
  std::vector<int64_t> deltas_s;
  if (options.deltas_s) {
    deltas_s = *options.deltas_s;
  } else {
    for (const auto& [delta_s, statistics] : info.tendencies)
      deltas_s.push_back(delta_s);
  }
  for (const int64_t delta_s : deltas_s) {
    if (delta_s >= info.frequency_s && delta_s % info.frequency_s == 0) continue;
    throw ConfigError("--tendencies",
                      concat(format_duration(delta_s), " is no multiple of the frequency of '",
                             info.name, "', ", format_duration(info.frequency_s)));
  }
  std::ranges::sort(deltas_s);
  deltas_s.erase(std::unique(deltas_s.begin(), deltas_s.end()), deltas_s.end());
  return deltas_s;
}

template <class T>
ComputedStatistics compute(const zarr::Array& array, const AnemoiMetadata& metadata,
                           const StatisticsWindow& window, int64_t threads,
                           ProgressSink* progress) {
  const std::vector<int64_t>& shape = array.meta().shape;
  const RowFields<T> read = [&](int64_t row, std::span<T> out) {
    const int64_t stored = metadata.stored_rows[static_cast<size_t>(row)];
    zarr::Region region = zarr::Region::whole(shape);
    region.begin[0] = stored;
    region.end[0] = stored + 1;
    const std::vector<T> values = array.read<T>(region);
    std::ranges::copy(values, out.begin());
  };
  return compute_statistics(window, {.variables = shape[1], .values = shape[2] * shape[3]}, read,
                            threads, progress);
}

// Replaces an array of one dimension by a folder that is complete before it gets its name.
void replace_vector(const fs::path& folder, const std::string& name, int format,
                    const std::vector<double>& values) {
  const auto count = static_cast<int64_t>(values.size());
  const fs::path fresh = folder / concat(".", name, "-", unique_suffix());
  make_directories(fresh);
  zarr::ArraySettings settings{.format = format, .shape = {count}, .chunks = {count}};
  settings.type.item_bytes = sizeof(double);
  if (format == 3) settings.compression = {zarr::Compression::Kind::kZstd, "", 0, 0};
  settings.attributes = Json{{"_ARRAY_DIMENSIONS", {"variable"}}};
  const zarr::ArrayWriter writer(folder, fresh.filename(), settings, fresh);
  const int64_t first = 0;
  zarr::WriteScratch scratch;
  const zarr::ItemBlock block{{{0}, {count}}, std::as_bytes(std::span(values))};
  writer.write({&first, 1}, block, scratch);
  writer.write_metadata();
  const fs::path place = folder / name, old = fresh.string() + ".old";
  std::error_code error;
  if (path_exists(place)) {
    fs::rename(place, old, error);
    if (error) throw Error(concat("cannot replace '", place.string(), "': ", error.message()));
  }
  fs::rename(fresh, place, error);
  if (error) throw Error(concat("cannot make '", place.string(), "': ", error.message()));
  fs::remove_all(old, error);
}

// The name under which the store has tendencies over a time, or Anemoi's for it.
std::string tendency_prefix(const std::vector<std::string>& names, int64_t delta_s) {
  constexpr std::string_view kPrefix = "statistics_tendencies_", kStdev = "_stdev";
  for (const std::string& name : names) {
    if (!name.starts_with(kPrefix) || !name.ends_with(kStdev)) continue;
    const std::string prefix = name.substr(0, name.size() - kStdev.size());
    try {
      if (parse_duration(prefix.substr(kPrefix.size())) == delta_s) return prefix + "_";
    } catch (const Error&) {
      continue;  // an array of somebody else
    }
  }
  return concat(kPrefix, format_duration(delta_s), "_");
}

void write_period(const fs::path& folder, const zarr::Group& group,
                  const StoreStatistics& statistics) {
  Json attributes = group.attributes;
  attributes["statistics_start_date"] = format_date(statistics.first_s);
  attributes["statistics_end_date"] = format_date(statistics.last_s);
  if (group.format == 2) return write_file_atomic(folder / ".zattrs", attributes.dump(4));
  const fs::path file = folder / "zarr.json";
  Json json = zarr::parse_json(read_file(file), file.string());
  json["attributes"] = attributes;
  write_file_atomic(file, json.dump(2));
}

}  // namespace

StoreStatistics compute_store_statistics(const StorePtr& store, const StatisticsOptions& options,
                                         ProgressSink* progress) {
  const zarr::Group group = open_anemoi_group(*store);
  const zarr::Array array(store, "data");
  const AnemoiMetadata metadata = read_anemoi_metadata(store, group, array, false, false);
  const DatasetInfo& info = metadata.info;
  const auto [first, end] = period_rows(group, info, options);
  const std::vector<int64_t> deltas_s = wanted_deltas(info, options);
  StatisticsWindow window{first, end, info.missing_rows, {}};
  for (const int64_t delta_s : deltas_s)
    window.lags.push_back(delta_s / info.frequency_s);
  const zarr::DataType& type = array.meta().type;
  const bool is_double = type.kind != zarr::Kind::kFloat || type.item_bytes == 8;
  const ComputedStatistics computed =
      is_double ? compute<double>(array, metadata, window, options.threads, progress)
                : compute<float>(array, metadata, window, options.threads, progress);
  StoreStatistics result{.variables = info.variables,
                         .frequency_s = info.frequency_s,
                         .first_s = info.dates_s[static_cast<size_t>(first)],
                         .last_s = info.dates_s[static_cast<size_t>(end - 1)],
                         .computed = computed.all,
                         .stored = info.statistics,
                         .tendencies = {},
                         .stored_tendencies = info.tendencies};
  for (size_t k = 0; k < deltas_s.size(); ++k)
    result.tendencies[deltas_s[k]] = computed.tendencies[k];
  return result;
}

void write_statistics(const std::string& folder, const StoreStatistics& statistics) {
  if (!folder_exists(folder)) {
    throw DataError(concat("'", folder, "' is no folder: statistics cannot be written into it"),
                    "unpack it, or write a copy with aifs-train data reshape");
  }
  const zarr::DirectoryStore store(folder);
  const zarr::Group group = open_anemoi_group(store);
  const auto replace = [&](const std::string& prefix, const Statistics& values) {
    for (const auto& [name, member] : kParts)
      replace_vector(folder, prefix + name, group.format, values.*member);
  };
  replace("", statistics.computed);
  for (const auto& [delta_s, values] : statistics.tendencies)
    replace(tendency_prefix(store.root_names(), delta_s), values);
  write_period(folder, group, statistics);
  zarr::sync_store(folder);
}

std::optional<StatisticsDifference> largest_difference(const std::vector<std::string>& variables,
                                                       const Statistics& computed,
                                                       const Statistics& stored) {
  StatisticsDifference result;
  bool any = false;
  for (size_t v = 0; v < variables.size(); ++v) {
    const double range = computed.maximum[v] - computed.minimum[v];
    for (const auto& [name, member] : kParts) {
      const double own = (computed.*member)[v], other = (stored.*member)[v];
      if (std::isnan(other) && std::isnan(own)) continue;
      any = any || !std::isnan(other);
      // Deviations of what hardly varies are rounding.
      const double size = std::max(std::abs(computed.minimum[v]), std::abs(computed.maximum[v]));
      const double scale = member == &Statistics::stdev ? std::max(own, 1e-6 * size)
                                                        : std::max(range, std::abs(own));
      double difference = own == other ? 0.0 : std::abs(own - other) / scale;
      if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
      if (difference <= result.largest && !result.where.empty()) continue;
      result = {difference, concat(name, " of ", variables[v])};
    }
  }
  if (!any) return std::nullopt;
  return result;
}

}  // namespace aifs::data
