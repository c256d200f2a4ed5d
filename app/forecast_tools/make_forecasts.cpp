// SPDX-License-Identifier: Apache-2.0
#include "app/forecast_tools/make_forecasts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "app/forecast_tools/forecast_files.h"
#include "app/run/exit_codes.h"
#include "app/run/failure.h"
#include "app/run/share.h"
#include "app/run/signals.h"
#include "core/check.h"
#include "core/file_io.h"
#include "core/folder_trial.h"
#include "core/join.h"
#include "core/log.h"
#include "core/stale_files.h"
#include "core/time.h"
#include "data/sources/computed_forcings.h"
#include "data/sources/state_dataset.h"
#include "forecast/forecast_run.h"
#include "parallel/together.h"

namespace aifs::app {

namespace {

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
  for (const std::string& path : command.states)
    json["state_files"].push_back(sha256_hex(MappedFile(path).bytes()));
  if (!command.area.empty()) json["area"] = command.area;
  if (!command.grid.empty()) json["grid"] = {command.grid, command.interpolation};
  if (command.format == "grib")
    json["grib"] = {command.grib_bits, command.grib_names, command.grib_keys};
  return sha256_hex(json.dump());
}

// The dataset of a network, with the states of the files of a command.
std::shared_ptr<data::StateDataset> open_states(const Run& run, const ForecastCommand& command) {
  if (command.states.empty()) return nullptr;
  if (run.datasets().size() > 1)
    throw ConfigError("--states",
                      "the network has several datasets, whose states files do not name",
                      "give datasets with --set");
  std::vector<std::unique_ptr<data::StateFile>> files;
  for (const std::string& path : command.states)
    files.push_back(data::open_state_file(path, "--states"));
  const DataParts& parts = run.data();
  return std::make_shared<data::StateDataset>(parts.training, std::move(files),
                                              parts.variables.input_columns());
}

class Forecasts {
 public:
  Forecasts(const Run& run, const train::CheckpointInfo& checkpoint, const ForecastCommand& command)
      : run_(run),
        command_(command),
        lead_time_s_(lead_time_s(command)),
        states_(open_states(run, command)),
        source_(run.data().training_source),
        setup_(setup_with_states()),
        forecaster_(run.make_forecaster(/*with_truth=*/false)),
        files_(run, setup_, command,
               concat("aifs-train, weights of step ", checkpoint.state.step, " in '",
                      checkpoint.path.string(), "'")) {
    check_constants();
    for (size_t d = 0; d < run.datasets().size(); ++d)
      identity_.push_back(identity_of(run, checkpoint, command, d));
  }

  // Dates of the command, or the newest one of the files of states.
  std::vector<int64_t> dates() const {
    std::vector<int64_t> dates = start_dates(command_);
    if (!dates.empty()) return dates;
    const std::vector<int64_t> of_files = states_->file_dates();
    if (of_files.empty())
      throw DataError(concat("'", states_->info().name, "' has no dates"), "name one with --dates");
    return {of_files.back()};
  }

  // Returns the dates that lack a file. Throws ConfigError for a file of another forecast.
  std::vector<int64_t> missing(const std::vector<int64_t>& dates) const {
    std::vector<int64_t> left;
    for (const int64_t date : dates) {
      bool complete = true;
      for (size_t d = 0; d < identity_.size(); ++d) {
        if (!files_.are_written(d)) continue;
        const fs::path path = files_.path_of(date, d);
        if (!path_exists(path)) {
          complete = false;
          continue;
        }
        if (files_.identity_in(path) == identity_[d]) continue;
        throw ConfigError("--out",
                          concat("'", path.string(),
                                 "' is another forecast: of other weights, data, variables, cells "
                                 "or lead time"),
                          "choose another folder, or remove the file");
      }
      if (!complete) left.push_back(date);
    }
    return left;
  }

  // Throws DataError for states or forcings that are not there; says what is odd about states.
  void check(const std::vector<int64_t>& dates) const {
    for (const int64_t date : dates) {
      for (int64_t i = 0; states_ && i < setup_.window.times_in; ++i)
        states_->require_state(date - i * setup_.timestep_s);
      forecast::check_request(setup_, request_of(date));
    }
    if (!states_) return;
    for (const std::string& warning : states_->warnings())
      log::warning(warning);
  }

  // Makes the folders of files. Of one process.
  void make_folders() const {
    for (size_t d = 0; d < identity_.size(); ++d) {
      const fs::path folder = files_.path_of(0, d).parent_path();
      check_writable(folder);
      make_directories(folder);
      remove_stale_files(folder, "forecast-", /*quiet_s=*/60.0);
    }
  }

  // True if forecasts can be interrupted and go on.
  bool can_restart() const {
    return forecast::can_restart(forecaster_, setup_, run_.network().num_members());
  }

  void make(int64_t date, int64_t number, int64_t of) {
    forecast::ForecastRequest request = request_of(date);
    const bool writes = forecast::writes_forecasts(run_.mesh());
    std::optional<FileLock> lock;
    if (writes && can_restart()) prepare_restarts(date, request.restarts, lock);
    std::vector<std::shared_ptr<forecast::ForecastFile>> files(identity_.size());
    if (writes) files = open_files(date, request.restarts);
    const forecast::ForecastTimes times =
        forecast::run_forecast(forecaster_, setup_, request, files, files_.outputs());
    const auto writing = run_.mesh().world().at_work("writing a forecast");
    std::string path;
    for (size_t d = 0; d < files.size(); ++d) {
      if (!files[d]) continue;
      files[d]->finish();
      if (path.empty()) path = files_.path_of(date, d).string();
    }
    std::error_code ignored;
    for (const char* suffix : {kRestart, kLock})
      if (lock && lock->held()) fs::remove(beside(date, suffix), ignored);
    log::info("forecast ", number, " of ", of, ", from ", format_date(date), ": ",
              request.lead_time_s / setup_.timestep_s, " times in ", format_elapsed(times.total),
              " (waited for data ", format_elapsed(times.data), ", for files ",
              format_elapsed(times.files), ")", path.empty() ? "" : concat(", '", path, "'"));
  }

 private:
  forecast::ForecastRequest request_of(int64_t date) const {
    return {date, lead_time_s_, command_.constant, {}};
  }

  static constexpr const char* kPartial = ".tmp-partial";
  static constexpr const char* kRestart = ".tmp-restart";
  static constexpr const char* kLock = ".tmp-lock";

  // A file beside the first one of a forecast.
  fs::path beside(int64_t date, const char* suffix) const {
    size_t first = 0;
    while (first + 1 < identity_.size() && !files_.are_written(first))
      ++first;
    return files_.path_of(date, first).string() + suffix;
  }

  // Two processes may make one forecast; the first one has its restart file.
  void prepare_restarts(int64_t date, forecast::ForecastRestarts& restarts,
                        std::optional<FileLock>& lock) const {
    lock.emplace(beside(date, kLock));
    restarts.should_stop = stop_requested;
    if (!lock->held()) return;
    restarts.path = beside(date, kRestart);
    restarts.identity = join(identity_);
    restarts.every_s = save_every_s(command_);
    try {
      restarts.from = forecast::read_restart(restarts.path, restarts.identity);
      if (restarts.from) check_restart(restarts);
    } catch (const DataError& error) {
      log::warning(error.what(), "; the forecast from ", format_date(date), " begins anew");
      restarts.from.reset();
    }
  }

  // Throws DataError for one that no forecast of this command has written.
  void check_restart(const forecast::ForecastRestarts& restarts) const {
    const int64_t step_s = setup_.timestep_s * setup_.window.times_out;
    if (restarts.from->files.size() == identity_.size() &&
        restarts.from->steps < (lead_time_s_ + step_s - 1) / step_s)
      return;
    throw DataError(concat("'", restarts.path.string(), "' is not of this forecast"), "remove it");
  }

  // Removes the restart file of files that are written over: nothing may take them for the
  // beginning of another forecast.
  static void forget(const forecast::ForecastRestarts& restarts) {
    std::error_code ignored;
    if (!restarts.path.empty()) fs::remove(restarts.path, ignored);
  }

  std::vector<std::shared_ptr<forecast::ForecastFile>> open_files(
      int64_t date, forecast::ForecastRestarts& restarts) const {
    const auto open = [&] {
      std::vector<std::shared_ptr<forecast::ForecastFile>> files(identity_.size());
      for (size_t d = 0; d < files.size(); ++d) {
        if (!files_.are_written(d)) continue;
        forecast::PartialFile partial;
        if (!restarts.path.empty()) partial.path = files_.path_of(date, d).string() + kPartial;
        if (restarts.from) partial.state = restarts.from->files.at(d);
        files[d] = files_.create(date, d, identity_[d], std::move(partial));
      }
      return files;
    };
    if (restarts.from) {
      try {
        auto files = open();
        log::info("the forecast from ", format_date(date), " goes on after ",
                  restarts.from->steps * setup_.window.times_out, " of ",
                  lead_time_s_ / setup_.timestep_s, " lead times");
        return files;
      } catch (const DataError& error) {
        log::warning(error.what(), "; the forecast from ", format_date(date), " begins anew");
      }
      restarts.from.reset();
    }
    forget(restarts);
    return open();
  }

  forecast::ForecastSetup setup_with_states() {
    forecast::ForecastSetup setup = run_.forecast_setup();
    if (!states_) return setup;
    source_.dataset = states_;
    const forecast::ForecastDataset of_run = setup.datasets.front();
    setup.datasets.clear();
    setup.datasets.push_back({source_, of_run.variables, of_run.post_processor, of_run.loading,
                              of_run.cells_per_rank, of_run.output_mask});
    return setup;
  }

  // Throws ConfigError for names that are no forcings of any dataset.
  void check_constants() const {
    for (const std::string& name : command_.constant) {
      if (data::is_computed_forcing(name))
        throw ConfigError("--constant", concat("'", name, "' is computed from place and date"));
      const auto is_forcing = [&](const DataParts& d) {
        const std::vector<std::string>& names = d.variables.names();
        const auto found = std::find(names.begin(), names.end(), name);
        return found != names.end() &&
               d.variables.role(found - names.begin()) == data::Role::kForcing;
      };
      if (std::ranges::any_of(run_.datasets(), is_forcing)) continue;
      throw ConfigError("--constant", concat("there is no forcing '", name, "'"),
                        nearest_names(name, run_.data().variables.names()));
    }
  }

  const Run& run_;
  const ForecastCommand& command_;
  const int64_t lead_time_s_;
  std::shared_ptr<data::StateDataset> states_;  // null: those of the run's dataset
  data::SampleSource source_;                   // of states_
  const forecast::ForecastSetup setup_;
  const train::Forecaster forecaster_;
  const ForecastFiles files_;
  std::vector<std::string> identity_;  // of each dataset
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
  grib_options(command);
  file_grid(command), file_area(command), save_every_s(command);
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

int make_forecasts(const Run& run, const train::CheckpointInfo& checkpoint,
                   const ForecastCommand& command) {
  const parallel::ProcessMesh& mesh = run.mesh();
  std::vector<int64_t> dates;
  std::unique_ptr<Forecasts> forecasts;
  std::string left_text;
  const auto prepare = [&] {
    forecasts = std::make_unique<Forecasts>(run, checkpoint, command);
    dates = forecasts->dates();
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
  if (forecasts->can_restart()) {
    install_signal_handlers();
    defer_stops();
  }
  const auto replicas = static_cast<size_t>(mesh.data().size());
  bool left_early = false;
  try {
    for (size_t i = static_cast<size_t>(mesh.replica()); i < left.size() && !left_early;
         i += replicas) {
      left_early = stop_requested();
      if (!left_early)
        forecasts->make(left[i], static_cast<int64_t>(i) + 1, static_cast<int64_t>(left.size()));
    }
  } catch (const InterruptedError& error) {
    log::info(error.what(), "; ", error.hint());
    left_early = true;
  }
  if (parallel::on_any_rank(mesh.world(), left_early)) return kInterrupted;
  if (mesh.is_main()) log::info(dates.size(), " forecasts are in '", command.out, "'");
  return kSuccess;
}

}  // namespace aifs::app
