// SPDX-License-Identifier: Apache-2.0
#include "app/forecast_tools/forecast_files.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "app/data_tools/parsed_option.h"
#include "app/run/versions.h"
#include "core/check.h"
#include "core/time.h"
#include "data/sources/grib_message.h"
#include "forecast/grib_forecast.h"
#include "forecast/netcdf_forecast.h"
#include "forecast/zarr_forecast.h"

namespace aifs::app {

namespace {

// "20000131T0600"; seconds only where there are some.
std::string compact(int64_t date_s) {
  std::string text = format_date(date_s);
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text.ends_with("00") ? text.substr(0, text.size() - 2) : text;
}

const char* suffix_of(const std::string& format) {
  if (format == "zarr") return ".zarr";
  return format == "grib" ? ".grib" : ".nc";
}

}  // namespace

int64_t lead_time_s(const ForecastCommand& command) {
  return parsed("--lead-time", [&] { return parse_duration(command.lead_time); });
}

ForecastFiles::ForecastFiles(const Run& run, const forecast::ForecastSetup& setup,
                             const ForecastCommand& command, std::string model)
    : run_(run),
      setup_(setup),
      command_(command),
      model_(std::move(model)),
      grib_(grib_options(command)) {
  choose_outputs();
  maps_.resize(outputs_.size());
  if (run.mesh().is_main() || forecast::writes_forecasts(run.mesh())) make_maps();
  if (command.format != "grib") return;
  data::require_grib("--format");
  for (size_t d = 0; d < outputs_.size(); ++d)
    if (are_written(d)) forecast::check_grib(contents(0, d), grib_);
}

void ForecastFiles::choose_outputs() {
  const auto is_any = [&](const std::string& name) {
    return std::ranges::any_of(run_.datasets(), [&](const DataParts& data) {
      return data.variables.find_output(name) >= 0;
    });
  };
  for (const std::string& name : command_.variables)
    if (!is_any(name))
      throw ConfigError("--variables", concat("the network has no output '", name, "'"),
                        nearest_names(name, run_.data().variables.output_names()));
  for (const DataParts& data : run_.datasets()) {
    std::vector<std::string> names;
    for (const std::string& name : command_.variables)
      if (data.variables.find_output(name) >= 0) names.push_back(name);
    const bool is_left_out = !command_.variables.empty() && names.empty();
    outputs_.push_back(is_left_out ? std::vector<int64_t>()
                                   : forecast::chosen_outputs(data.variables, names));
  }
}

void ForecastFiles::make_maps() {
  const std::optional<forecast::RegularGrid> grid = file_grid(command_);
  const std::optional<forecast::Area> area = file_area(command_);
  if (!grid && !area) return;
  for (size_t d = 0; d < outputs_.size(); ++d) {
    if (!are_written(d)) continue;
    const forecast::ForecastContents cells = contents(0, d);
    maps_[d] = std::make_shared<const forecast::CellMap>(
        grid ? forecast::map_to_grid(cells, *grid, area) : forecast::select_area(cells, *area));
  }
}

fs::path ForecastFiles::path_of(int64_t date_s, size_t dataset) const {
  fs::path folder(command_.out);
  if (outputs_.size() > 1) folder /= run_.datasets()[dataset].name;
  return folder / concat("forecast-", compact(date_s), suffix_of(command_.format));
}

std::string ForecastFiles::identity_in(const fs::path& path) const {
  if (command_.format == "zarr") return forecast::zarr_forecast_identity(path);
  if (command_.format == "grib") return forecast::grib_forecast_identity(path);
  return forecast::forecast_identity(path);
}

std::shared_ptr<forecast::ForecastFile> ForecastFiles::create(int64_t date_s, size_t dataset,
                                                              const std::string& identity,
                                                              forecast::PartialFile partial) const {
  const fs::path path = path_of(date_s, dataset);
  const auto& map = maps_[dataset];
  forecast::ForecastContents cells = contents(date_s, dataset);
  cells.identity = identity;
  cells.partial = std::move(partial);
  if (map) cells = forecast::mapped_contents(std::move(cells), *map);
  std::unique_ptr<forecast::ForecastFile> file;
  if (command_.format == "zarr")
    file = forecast::create_zarr_forecast(path, std::move(cells));
  else if (command_.format == "grib")
    file = forecast::create_grib_forecast(path, std::move(cells), grib_);
  else
    file = forecast::create_netcdf_forecast(path, std::move(cells), command_.compression);
  return map ? forecast::map_fields(std::move(file), map, at::get_num_threads()) : std::move(file);
}

forecast::ForecastContents ForecastFiles::contents(int64_t date_s, size_t dataset) const {
  const DataParts& data = run_.datasets()[dataset];
  const data::DatasetInfo& info = data.training->info();
  forecast::ForecastContents contents{.start_s = date_s,
                                      .lead_times_s = {},
                                      .variables = {},
                                      .num_members = run_.network().num_members(),
                                      .latitudes_deg = {},
                                      .longitudes_deg = {},
                                      .field_shape = info.field_shape,
                                      .model = model_,
                                      .program = concat("aifs-train ", program_version()),
                                      .identity = {}};
  for (const int64_t cell : forecast::written_cells(setup_.datasets[dataset])) {
    contents.latitudes_deg.push_back(info.latitudes_deg[static_cast<size_t>(cell)]);
    contents.longitudes_deg.push_back(info.longitudes_deg[static_cast<size_t>(cell)]);
  }
  const auto num_cells = static_cast<int64_t>(contents.latitudes_deg.size());
  if (num_cells < info.num_nodes()) contents.field_shape = {num_cells};
  const int64_t last_s = lead_time_s(command_);
  for (int64_t lead_s = setup_.timestep_s; lead_s <= last_s; lead_s += setup_.timestep_s)
    contents.lead_times_s.push_back(lead_s);
  for (const int64_t v : outputs_[dataset]) {
    const auto column =
        static_cast<size_t>(data.variables.output_columns()[static_cast<size_t>(v)]);
    const data::VariableKind kind = info.kinds.empty() ? data::VariableKind() : info.kinds[column];
    contents.variables.push_back(
        {info.variables[column], kind.units, kind.level_type, kind.period_s.value_or(0)});
  }
  return contents;
}

}  // namespace aifs::app
