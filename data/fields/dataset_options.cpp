// SPDX-License-Identifier: Apache-2.0
#include "data/fields/dataset_options.h"

#include <nlohmann/json.hpp>

#include "core/check.h"

namespace aifs::data {

namespace {

// Lets the field bound last also take texts that `accepts` says yes to.
void also_accept(config::Binder& b, std::string& value, bool (*accepts)(const std::string&)) {
  config::Field& field = b.fields().back();
  field.read = [&value, accepts, read = field.read](const config::Json& json,
                                                    const std::string& path,
                                                    const config::ReadContext& context) {
    if (json.is_string() && accepts(json.get<std::string>())) {
      value = json.get<std::string>();
    } else {
      read(json, path, context);
    }
  };
}

void bind_netcdf(config::Binder& b, NetcdfOptions& o) {
  b.text_list("netcdf", o.files,
              {"CF netCDF files instead of an Anemoi dataset: names, or patterns with * and ?"},
              config::TextKind::kPath);
  b.text_map("variables", o.variables,
             {"netCDF: name of a variable in the files: its name here, to which levels are added "
              "(t: t_850); empty: all fields under their own names"});
  b.text_list("forcings", o.forcings,
              {"netCDF: forcings that are computed as Anemoi does: cos_ and sin_ of latitude, "
               "longitude, julian_day and local_time, insolation"});
  b.boolean("longitudes_from_zero", o.longitudes_from_zero,
            {"netCDF: turn rows so that their longitudes ascend from 0 eastwards"});
  bind_date_or_share(b, "statistics_start", o.statistics_start,
                     {"netCDF: first date of the statistics; empty: the first of all"});
  bind_date_or_share(b, "statistics_end", o.statistics_end,
                     {"netCDF: last date of the statistics; empty: as Anemoi chooses, the first "
                      "80 % of the dates of less than ten years"});
  b.text("statistics_dir", o.statistics_dir,
         {"netCDF: folder that keeps the computed statistics; empty: that of the files"},
         config::TextKind::kPath);
}

}  // namespace

void bind_date_or_share(config::Binder& b, const char* key, std::string& value, config::Doc doc) {
  b.text(key, value, std::move(doc), config::TextKind::kDate);
  b.fields().back().type += ", or percentage of the dates such as \"80%\"";
  also_accept(b, value, [](const std::string& text) { return !is_date(text); });
}

bool is_date(const std::string& text) {
  const bool is_hour = text.size() == 5 && text.ends_with(":00");
  return !text.empty() && !text.ends_with('%') && !is_hour;
}

void DatasetOptions::bind(config::Binder& b) {
  b.text("dataset", dataset, {"folder of an Anemoi dataset, usually named *.zarr"},
         config::TextKind::kPath);
  bind_netcdf(b, netcdf);
  bind_date_or_share(b, "start", start, {"first date that is used; empty: from the beginning"});
  bind_date_or_share(
      b, "end", end,
      {"last date that is used; an incomplete date ends with its period; empty: to the end"});
  b.text(
      "frequency", frequency,
      {"use every k-th date only, from the first one on; empty: all; a multiple of the dataset's"},
      config::TextKind::kDuration);
  also_accept(b, frequency, [](const std::string& text) { return text.empty(); });
  b.text_list("select", select, {"variables that are used, in this order, or one; empty: all"});
  b.text_list("drop", drop, {"variables that are left out, after select, or one"});
  b.boolean(
      "strict", strict,
      {"refuse dates whose chunks are absent though they are not marked as missing; else they "
       "are read as the fill value of the array, as Anemoi does"});
  b.boolean("allow_missing_chunks", allow_missing_chunks,
            {"has no effect: older configurations name what is now done without `strict`"});
  b.integer("cache_mib", cache_mib, {.min = 0, .max = 1 << 20},
            {"memory for decoded chunks, used only if a chunk holds several dates", "MiB"});
}

void DatasetOptions::validate(const std::string& at) const {
  if (!netcdf.files.empty() && !dataset.empty()) {
    throw ConfigError(at + ".netcdf", "there is a dataset, too", "leave one of them out");
  }
  const auto needs_files = [&](bool is_given, const char* key) {
    if (!is_given || !netcdf.files.empty()) return;
    throw ConfigError(concat(at, ".", key), "is of netCDF files, and none are named",
                      "name them in netcdf, or leave it out");
  };
  needs_files(!netcdf.variables.empty(), "variables");
  needs_files(!netcdf.forcings.empty(), "forcings");
  needs_files(netcdf.longitudes_from_zero, "longitudes_from_zero");
  needs_files(!netcdf.statistics_start.empty(), "statistics_start");
  needs_files(!netcdf.statistics_end.empty(), "statistics_end");
  needs_files(!netcdf.statistics_dir.empty(), "statistics_dir");
  if (strict && allow_missing_chunks) {
    throw ConfigError(at + ".strict", "contradicts allow_missing_chunks", "leave one of them out");
  }
}

}  // namespace aifs::data
