// SPDX-License-Identifier: Apache-2.0
#include "app/forecast_tools/make_forecasts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/data_tools/parsed_option.h"
#include "app/run/failure.h"
#include "app/run/share.h"
#include "app/run/versions.h"
#include "core/check.h"
#include "core/file_io.h"
#include "core/folder_trial.h"
#include "core/log.h"
#include "core/stale_files.h"
#include "core/time.h"
#include "data/sources/computed_forcings.h"
#include "forecast/forecast_run.h"
#include "forecast/netcdf_forecast.h"
#include "forecast/zarr_forecast.h"
#include "parallel/together.h"

namespace aifs::app {

namespace {

int64_t lead_time_s(const ForecastCommand& command) {
  return parsed("--lead-time", [&] { return parse_duration(command.lead_time); });
}

// "20000131T0600"; seconds only where there are some.
std::string compact(int64_t date_s) {
  std::string text = format_date(date_s);
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text.ends_with("00") ? text.substr(0, text.size() - 2) : text;
}

// Hashes what forecasts are made of: weights, states, and what was asked for.
std::string identity_of(const Run& run, const train::CheckpointInfo& checkpoint,
                        const ForecastCommand& command, size_t dataset) {
  RunConfig copy = run.config();
  const auto config = nlohmann::ordered_json::parse(effective_json(copy));
  const data::DatasetInfo& info = run.datasets()[dataset].validation->info();
  nlohmann::ordered_json json{{"checkpoint", read_file(checkpoint.path / "manifest.json")},
                              {"graph", run.graph().hash},
                              {"model", config["model"]},
                              {"precision", config["train"]["precision"]},
                              {"average", config["optimizer"]["average"]},
                              {"seed", run.config().run.seed},
                              {"lead_time_s", lead_time_s(command)},
                              {"variables", command.variables},
                              {"constant", command.constant}};
  for (const char* key : {"kind", "dataset", "datasets", "analytic", "forcing", "diagnostic",
                          "normalizer", "imputer", "remapper", "postprocessor", "tables"})
    if (config["data"].contains(key)) json["data"][key] = config["data"][key];
  json["states"] = nlohmann::ordered_json{{"dates", info.dates_s},
                                          {"missing", info.missing_rows},
                                          {"mean", info.statistics.mean},
                                          {"stdev", info.statistics.stdev}};
  return sha256_hex(json.dump());
}

class Forecasts {
 public:
  Forecasts(const Run& run, const train::CheckpointInfo& checkpoint, const ForecastCommand& command)
      : run_(run),
        command_(command),
        lead_time_s_(lead_time_s(command)),
        setup_(run.forecast_setup()),
        forecaster_(run.make_forecaster(/*with_truth=*/false)) {
    model_ = concat("aifs-train, weights of step ", checkpoint.state.step, " in '",
                    checkpoint.path.string(), "'");
    check_names();
    for (size_t d = 0; d < run.datasets().size(); ++d) {
      const data::VariableTable& variables = run.datasets()[d].variables;
      const std::vector<std::string> names = names_in(variables);
      const bool is_left_out = !command.variables.empty() && names.empty();
      outputs_.push_back(is_left_out ? std::vector<int64_t>()
                                     : forecast::chosen_outputs(variables, names));
      identity_.push_back(identity_of(run, checkpoint, command, d));
    }
  }

  // Returns the dates that lack a file. Throws ConfigError for a file of another forecast.
  std::vector<int64_t> missing(const std::vector<int64_t>& dates) const {
    std::vector<int64_t> left;
    for (const int64_t date : dates) {
      bool complete = true;
      for (size_t d = 0; d < outputs_.size(); ++d) {
        if (outputs_[d].empty()) continue;
        if (!path_exists(path_of(date, d))) {
          complete = false;
          continue;
        }
        if (identity_in(path_of(date, d)) == identity_[d]) continue;
        throw ConfigError(
            "--out",
            concat("'", path_of(date, d).string(),
                   "' is another forecast: of other weights, data, ", "variables or lead time"),
            "choose another folder, or remove the file");
      }
      if (!complete) left.push_back(date);
    }
    return left;
  }

  // Throws DataError for states or forcings that are not there.
  void check(const std::vector<int64_t>& dates) const {
    for (const int64_t date : dates)
      forecast::check_request(setup_, request_of(date));
  }

  // Makes the folders of files. Of one process.
  void make_folders() const {
    for (size_t d = 0; d < outputs_.size(); ++d) {
      const fs::path folder = path_of(0, d).parent_path();
      check_writable(folder);
      make_directories(folder);
      remove_stale_files(folder, "forecast-", /*quiet_s=*/60.0);
    }
  }

  void make(int64_t date, int64_t number, int64_t of) {
    std::vector<std::shared_ptr<forecast::ForecastFile>> files(outputs_.size());
    if (forecast::writes_forecasts(run_.mesh())) {
      for (size_t d = 0; d < files.size(); ++d)
        if (!outputs_[d].empty()) files[d] = create(date, d);
    }
    const forecast::ForecastRequest request = request_of(date);
    const forecast::ForecastTimes times =
        forecast::run_forecast(forecaster_, setup_, request, files, outputs_);
    const auto writing = run_.mesh().world().at_work("writing a forecast");
    std::string path;
    for (size_t d = 0; d < files.size(); ++d) {
      if (!files[d]) continue;
      files[d]->finish();
      if (path.empty()) path = path_of(date, d).string();
    }
    log::info("forecast ", number, " of ", of, ", from ", format_date(date), ": ",
              request.lead_time_s / setup_.timestep_s, " times in ", format_elapsed(times.total),
              " (waited for data ", format_elapsed(times.data), ", for files ",
              format_elapsed(times.files), ")", path.empty() ? "" : concat(", '", path, "'"));
  }

 private:
  forecast::ForecastRequest request_of(int64_t date) const {
    return {date, lead_time_s_, command_.constant};
  }

  bool is_zarr() const { return command_.format == "zarr"; }

  std::string identity_in(const fs::path& path) const {
    return is_zarr() ? forecast::zarr_forecast_identity(path) : forecast::forecast_identity(path);
  }

  std::shared_ptr<forecast::ForecastFile> create(int64_t date, size_t dataset) const {
    const fs::path path = path_of(date, dataset);
    if (is_zarr()) return forecast::create_zarr_forecast(path, contents(date, dataset));
    return forecast::create_netcdf_forecast(path, contents(date, dataset), command_.compression);
  }

  // Returns the names that the user gives of outputs of one dataset.
  std::vector<std::string> names_in(const data::VariableTable& variables) const {
    std::vector<std::string> names;
    for (const std::string& name : command_.variables)
      if (variables.find_output(name) >= 0) names.push_back(name);
    return names;
  }

  // Throws ConfigError for names that are no outputs, or no forcings, of any dataset.
  void check_names() const {
    const auto is_any = [&](const auto& has) {
      return std::any_of(run_.datasets().begin(), run_.datasets().end(), has);
    };
    for (const std::string& name : command_.variables) {
      if (is_any([&](const DataParts& d) { return d.variables.find_output(name) >= 0; })) continue;
      throw ConfigError("--variables", concat("the network has no output '", name, "'"),
                        nearest_names(name, run_.data().variables.output_names()));
    }
    for (const std::string& name : command_.constant) {
      if (data::is_computed_forcing(name))
        throw ConfigError("--constant", concat("'", name, "' is computed from place and date"));
      const auto is_forcing = [&](const DataParts& d) {
        const std::vector<std::string>& names = d.variables.names();
        const auto found = std::find(names.begin(), names.end(), name);
        return found != names.end() &&
               d.variables.role(found - names.begin()) == data::Role::kForcing;
      };
      if (is_any(is_forcing)) continue;
      throw ConfigError("--constant", concat("there is no forcing '", name, "'"),
                        nearest_names(name, run_.data().variables.names()));
    }
  }

  // Each of several datasets has a folder of its own.
  fs::path path_of(int64_t date, size_t dataset) const {
    const fs::path folder = outputs_.size() > 1
                                ? fs::path(command_.out) / run_.datasets()[dataset].name
                                : fs::path(command_.out);
    return folder / concat("forecast-", compact(date), is_zarr() ? ".zarr" : ".nc");
  }

  forecast::ForecastContents contents(int64_t date, size_t dataset) const {
    const DataParts& data = run_.datasets()[dataset];
    const data::DatasetInfo& info = data.training->info();
    forecast::ForecastContents contents{.start_s = date,
                                        .lead_times_s = {},
                                        .variables = {},
                                        .num_members = run_.network().num_members(),
                                        .latitudes_deg = {},
                                        .longitudes_deg = {},
                                        .field_shape = info.field_shape,
                                        .model = model_,
                                        .program = concat("aifs-train ", program_version()),
                                        .identity = identity_[dataset]};
    for (const int64_t cell : forecast::written_cells(setup_.datasets[dataset])) {
      contents.latitudes_deg.push_back(info.latitudes_deg[static_cast<size_t>(cell)]);
      contents.longitudes_deg.push_back(info.longitudes_deg[static_cast<size_t>(cell)]);
    }
    const auto num_cells = static_cast<int64_t>(contents.latitudes_deg.size());
    if (num_cells < info.num_nodes()) contents.field_shape = {num_cells};
    for (int64_t lead = setup_.timestep_s; lead <= lead_time_s_; lead += setup_.timestep_s)
      contents.lead_times_s.push_back(lead);
    for (const int64_t v : outputs_[dataset]) {
      const auto column =
          static_cast<size_t>(data.variables.output_columns()[static_cast<size_t>(v)]);
      contents.variables.push_back(
          {info.variables[column], info.kinds.empty() ? "" : info.kinds[column].units});
    }
    return contents;
  }

  const Run& run_;
  const ForecastCommand& command_;
  const int64_t lead_time_s_;
  const forecast::ForecastSetup setup_;
  const train::Forecaster forecaster_;
  std::string model_;
  std::vector<std::vector<int64_t>> outputs_;  // of each dataset
  std::vector<std::string> identity_;
};

}  // namespace

RunConfig forecast_config(RunConfig config) {
  config.data.training = config.data.validation = {};
  config.run.mode = Mode::kTrain;
  config.init = {};
  train::ValidationOptions& validation = config.train.validation;
  validation.every_steps = validation.every_epochs = 0;
  validation.at_end = false;
  return config;
}

std::string without_layout(const std::string& config_json) {
  auto json = nlohmann::ordered_json::parse(config_json, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return config_json;  // whoever reads it says so
  if (json.contains("parallel") && json["parallel"].is_object())
    for (const char* key : {"model", "data", "tensor", "pipeline", "reproducible", "virtual_ranks"})
      json["parallel"].erase(key);
  if (json.contains("data") && json["data"].is_object()) json["data"].erase("tables");
  return json.dump();
}

void check_command(const ForecastCommand& command, const RunConfig& config) {
  start_dates(command);
  constexpr int64_t kMostSteps = 100'000;
  const int64_t lead = lead_time_s(command), step = parse_duration(config.data.timestep);
  if (lead > kMostSteps * step)
    throw ConfigError("--lead-time", concat(command.lead_time, " is more than ", kMostSteps,
                                            " times data.timestep"));
  if (lead > 0 && lead % step == 0) return;
  throw ConfigError("--lead-time",
                    concat(command.lead_time, " is not a positive multiple of data.timestep, ",
                           config.data.timestep));
}

void make_forecasts(const Run& run, const train::CheckpointInfo& checkpoint,
                    const ForecastCommand& command) {
  const parallel::ProcessMesh& mesh = run.mesh();
  std::vector<int64_t> dates = start_dates(command);
  std::unique_ptr<Forecasts> forecasts;
  std::string left_text;
  const auto prepare = [&] {
    forecasts = std::make_unique<Forecasts>(run, checkpoint, command);
    if (!mesh.is_main()) return;
    forecasts->make_folders();
    const std::vector<int64_t> missing = forecasts->missing(dates);
    forecasts->check(missing);
    left_text = nlohmann::ordered_json(missing).dump();
  };
  parallel::together(mesh.world(), prepare, failure_handling());
  share(left_text, mesh.world());
  const auto left = nlohmann::ordered_json::parse(left_text).get<std::vector<int64_t>>();
  if (mesh.is_main() && left.size() < dates.size())
    log::info(dates.size() - left.size(), " of ", dates.size(), " forecasts are there already");
  const auto replicas = static_cast<size_t>(mesh.data().size());
  for (size_t i = static_cast<size_t>(mesh.replica()); i < left.size(); i += replicas)
    forecasts->make(left[i], static_cast<int64_t>(i) + 1, static_cast<int64_t>(left.size()));
  mesh.world().barrier();
  if (mesh.is_main()) log::info(dates.size(), " forecasts are in '", command.out, "'");
}

}  // namespace aifs::app
