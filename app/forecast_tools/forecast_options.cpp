// SPDX-License-Identifier: Apache-2.0
#include "app/forecast_tools/forecast_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "app/data_tools/parsed_option.h"
#include "core/check.h"
#include "core/time.h"

namespace aifs::app {

namespace {

constexpr const char* kForecastFooter = R"(Examples
  aifs-train forecast runs/demo --dates 2000-11-01T00,2000-11-02T00 --lead-time 5d --out forecasts
  aifs-train forecast runs/a --first 2020-01-01 --last 2020-12-31 --every 12h --out forecasts
  aifs-train forecast runs/a --dates 2020-01-01 --out f --set data.dataset=states.zarr
  aifs-train forecast runs/a --states analysis.grib --format grib --out forecasts
  aifs-train forecast runs/a --dates 2020-01-01 --grid 0.5/0.5 --area 72/-12/34/42 --out europe

One netCDF file for each date: forecasts/forecast-20001101T0000.nc. Those that are there are not
made again. docs/forecast.md says what becomes of forcings after the last date of the dataset.)";

int64_t date_of(const std::string& text, const char* option, DateEnd end = DateEnd::kStart) {
  return parsed(
      option, [&] { return parse_date(text, end); }, "a date such as 2020-01-31T06");
}

// Years of hours; more is a mistake.
constexpr int64_t kMostDates = 1'000'000;

// Which dates.
void add_dates(CLI::App& command, ForecastCommand& c) {
  CLI::Option* dates =
      command.add_option("--dates", c.dates, "dates of the newest input states")->delimiter(',');
  CLI::Option* first = command.add_option("--first", c.first, "first of many dates")
                           ->type_name("DATE")
                           ->excludes(dates);
  CLI::Option* last =
      command.add_option("--last", c.last, "last of them")->type_name("DATE")->needs(first);
  first->needs(last);
  command.add_option("--every", c.every, "time between them")
      ->type_name("DURATION")
      ->needs(first)
      ->capture_default_str();
  command
      .add_option("--states", c.states,
                  "netCDF or GRIB files of the input states, in place of the dataset; of their "
                  "newest date if no dates are named")
      ->delimiter(',')
      ->type_name("FILE");
}

// Adds the options of what is in the files.
void add_files(CLI::App& command, ForecastCommand& c) {
  command
      .add_option("--format", c.format,
                  "of the files: netcdf, zarr (a dataset of Anemoi), or grib (edition 2)")
      ->check(CLI::IsMember({"netcdf", "zarr", "grib"}))
      ->capture_default_str();
  command
      .add_option("--compression", c.compression,
                  "of netCDF files: 0 (none, fastest) to 9 (smallest)")
      ->check(CLI::Range(0, 9))
      ->capture_default_str();
  command.add_option("--area", c.area, "write the cells of this box only")->type_name("N/W/S/E");
  command.add_option("--grid", c.grid, "write a regular grid of these steps in degrees")
      ->type_name("EAST/SOUTH");
  command.add_option("--interpolation", c.interpolation, "to that grid: conservative, or nearest")
      ->check(CLI::IsMember({"conservative", "nearest"}))
      ->capture_default_str();
  command
      .add_option("--save-every", c.save_every,
                  "time between states that an interrupted forecast goes on from")
      ->type_name("DURATION")
      ->capture_default_str();
  command.add_option("--grib-bits", c.grib_bits, "bits of a value in GRIB files")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  command
      .add_option("--grib-names", c.grib_names,
                  "what GRIB calls variables, a shortName or a paramId: VARIABLE=NAME,...")
      ->delimiter(',')
      ->type_name("NAMES");
  command.add_option("--grib-set", c.grib_keys, "keys of ecCodes for all messages: KEY=VALUE,...")
      ->delimiter(',')
      ->type_name("KEYS");
}

// "a=b" -> {"a", "b"}.
std::pair<std::string, std::string> divided(const std::string& text, const char* option) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw ConfigError(option, concat("'", text, "' is not two names around '='"));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace

CLI::App* add_forecast_command(CLI::App& app, ForecastCommand& c) {
  CLI::App* command =
      app.add_subcommand("forecast", "make forecasts and write them as netCDF (docs/forecast.md)");
  command->fallthrough();  // --config and --set may follow
  command->footer(kForecastFooter);
  command->add_option("FROM", c.from, "run or checkpoint")->required();
  add_dates(*command, c);
  command->add_option("--lead-time", c.lead_time, "how far each forecast goes")
      ->type_name("DURATION")
      ->capture_default_str();
  command->add_option("--out", c.out, "folder for the files")->type_name("DIR")->required();
  command->add_option("--variables", c.variables, "write these only")->delimiter(',');
  command
      ->add_option("--constant", c.constant,
                   "forcings that are the same at all dates, where the dataset does not say so")
      ->delimiter(',');
  add_files(*command, c);
  return command;
}

std::vector<int64_t> start_dates(const ForecastCommand& c) {
  std::vector<int64_t> dates;
  for (const std::string& text : c.dates)
    dates.push_back(date_of(text, "--dates"));
  if (!c.first.empty()) {
    const int64_t first = date_of(c.first, "--first");
    const int64_t last = date_of(c.last, "--last", DateEnd::kEnd);
    const int64_t every = parsed("--every", [&] { return parse_duration(c.every); });
    if (every <= 0) throw ConfigError("--every", concat("is ", c.every, ", must be positive"));
    if (last < first) throw ConfigError("--last", concat(c.last, " is before --first ", c.first));
    if ((last - first) / every >= kMostDates)
      throw ConfigError("--every", concat("more than ", kMostDates, " dates"));
    for (int64_t date = first; date <= last; date += every)
      dates.push_back(date);
  }
  if (dates.empty() && c.states.empty())
    throw ConfigError("--dates", "no date was given", "or name --first, --last and --every");
  std::sort(dates.begin(), dates.end());
  dates.erase(std::unique(dates.begin(), dates.end()), dates.end());
  return dates;
}

double save_every_s(const ForecastCommand& c) {
  const int64_t every_s = parsed("--save-every", [&] { return parse_duration(c.save_every); });
  if (every_s < 0) throw ConfigError("--save-every", concat("is ", c.save_every));
  return static_cast<double>(every_s);
}

forecast::GribOptions grib_options(const ForecastCommand& c) {
  forecast::GribOptions options{.bits = c.grib_bits, .names = {}, .keys = {}};
  for (const std::string& text : c.grib_names)
    options.names.insert(divided(text, "--grib-names"));
  for (const std::string& text : c.grib_keys)
    options.keys.push_back(divided(text, "--grib-set"));
  return options;
}

std::optional<forecast::RegularGrid> file_grid(const ForecastCommand& c) {
  if (c.grid.empty()) return std::nullopt;
  forecast::RegularGrid grid = forecast::parse_regular_grid(c.grid, "--grid");
  if (c.interpolation == "nearest") grid.interpolation = forecast::Interpolation::kNearest;
  return grid;
}

std::optional<forecast::Area> file_area(const ForecastCommand& c) {
  if (c.area.empty()) return std::nullopt;
  return forecast::parse_area(c.area, "--area");
}

}  // namespace aifs::app
