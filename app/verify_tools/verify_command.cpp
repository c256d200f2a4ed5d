// SPDX-License-Identifier: Apache-2.0
#include "app/verify_tools/verify_command.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "app/data_tools/parsed_option.h"
#include "app/run/exit_codes.h"
#include "app/run/make_data.h"
#include "app/verify_tools/truth_map.h"
#include "core/check.h"
#include "core/cores.h"
#include "core/file_io.h"
#include "core/folder_trial.h"
#include "core/log.h"
#include "core/temporary_folder.h"
#include "core/time.h"
#include "data/fields/time_axis.h"
#include "verify/cell_weights.h"
#include "verify/score_files.h"
#include "verify/score_netcdf.h"
#include "verify/spectrum_scores.h"
#include "verify/station_scores.h"
#include "verify/thresholds.h"

namespace aifs::app {

namespace {

std::vector<std::string> each_once(const std::vector<std::string>& names) {
  std::vector<std::string> kept;
  for (const std::string& name : names)
    if (std::find(kept.begin(), kept.end(), name) == kept.end()) kept.push_back(name);
  return kept;
}

verify::ScoredParts parts_to_score(const VerifyCommand& command,
                                   const verify::ForecastReader& forecast) {
  verify::ScoredParts parts;
  for (const std::string& text : each_once(command.regions)) {
    parts.regions.push_back(verify::parse_region(text, "--regions"));
    for (size_t r = 0; r + 1 < parts.regions.size(); ++r)
      if (parts.regions[r].name == parts.regions.back().name)
        throw ConfigError("--regions", concat("two are called '", parts.regions[r].name, "'"));
  }
  parts.variables = command.variables.empty() ? forecast.variables() : each_once(command.variables);
  for (const std::string& name : parts.variables) {
    const std::vector<std::string>& known = forecast.variables();
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw ConfigError("--variables", concat("'", forecast.path(), "' has no variable '", name, "'"),
                      nearest_names(name, known));
  }
  parts.thresholds = verify::parse_thresholds(command.thresholds, parts.variables, "--thresholds");
  parts.lead_times_s = forecast.lead_times_s();
  if (command.lead_times.empty()) return parts;
  parts.lead_times_s.clear();
  for (const std::string& text : command.lead_times) {
    const int64_t lead_s = parsed("--lead-times", [&] { return parse_duration(text); });
    const std::vector<int64_t>& known = forecast.lead_times_s();
    if (std::find(known.begin(), known.end(), lead_s) == known.end())
      throw ConfigError("--lead-times",
                        concat("'", forecast.path(), "' has no fields at ", text, ": it has ",
                               known.size(), " lead times up to ", format_lead_time(known.back())));
    parts.lead_times_s.push_back(lead_s);
  }
  std::sort(parts.lead_times_s.begin(), parts.lead_times_s.end());
  parts.lead_times_s.erase(std::unique(parts.lead_times_s.begin(), parts.lead_times_s.end()),
                           parts.lead_times_s.end());
  return parts;
}

// The weights of the cells of each region; each has one at least.
std::vector<std::vector<double>> weights_of(const VerifyCommand& command,
                                            const verify::ScoredParts& parts,
                                            const verify::ForecastReader& forecast,
                                            const verify::DatasetCells& truth) {
  const auto kind =
      command.weights == "area" ? verify::WeightKind::kArea : verify::WeightKind::kCosine;
  verify::ScoredCells cells{
      .latitudes_deg = forecast.latitudes_deg(),
      .longitudes_deg = forecast.longitudes_deg(),
      .weights = verify::cell_weights(kind, forecast.latitudes_deg(), forecast.longitudes_deg(),
                                      "--weights")};
  const std::vector<int64_t>& grids = truth.dataset().info().grids;
  if (grids.size() > 1)  // the limited area comes first; turned cells are of neither
    for (const int64_t cell : truth.cells())
      cells.is_inside.push_back(cell < grids.front());
  std::vector<std::vector<double>> weights;
  for (const verify::Region& region : parts.regions) {
    weights.push_back(verify::region_weights(region, cells, "--regions"));
    const auto& own = weights.back();
    if (std::any_of(own.begin(), own.end(), [](double w) { return w > 0.0; })) continue;
    throw ConfigError("--regions",
                      concat("no cell of '", forecast.path(), "' is in '", region.name, "'"));
  }
  return weights;
}

// Forecasts of one folder, from different dates.
struct ForecastSet {
  std::string folder;
  std::vector<fs::path> files;
  std::vector<int64_t> starts_s;
};

ForecastSet forecasts_of(const std::string& folder) {
  ForecastSet set{folder, verify::forecast_files(folder), {}};
  std::map<int64_t, std::string> by_start;
  std::optional<int64_t> num_members;
  for (const fs::path& file : set.files) {
    const verify::ForecastReader forecast(file);
    const auto [same, is_new] = by_start.try_emplace(forecast.start_s(), file.string());
    if (!is_new)
      throw DataError(concat("'", file.string(), "' and '", same->second, "' start from one date"),
                      "verify one forecast of a date at a time");
    if (!num_members) num_members = forecast.num_members();
    if (forecast.num_members() != *num_members)
      throw DataError(concat("'", file.string(), "' has ", forecast.num_members(), " members, '",
                             set.files.front().string(), "' ", *num_members),
                      "verify ensembles of one size at a time");
    set.starts_s.push_back(forecast.start_s());
  }
  return set;
}

std::vector<verify::ForecastScores> score_all(const ForecastSet& set,
                                              const verify::ScoreSetup& setup,
                                              const verify::ScoredParts& parts) {
  const data::DatasetInfo& info = setup.truth.cells().dataset().info();
  std::vector<verify::ForecastScores> all;
  size_t without_truth = 0;
  for (const fs::path& file : set.files) {
    all.push_back(verify::score_forecast(verify::ForecastReader(file), setup, parts));
    without_truth += all.back().num_without_truth;
  }
  const size_t fields = set.files.size() * parts.lead_times_s.size();
  if (without_truth == fields)
    throw DataError(concat("no forecast of '", set.folder, "' has truth in '", info.name, "'"),
                    concat("it has dates from ", format_date(info.dates_s.front()), " to ",
                           format_date(info.dates_s.back())));
  if (without_truth > 0)
    log::warning(without_truth, " of ", fields, " dates of '", set.folder,
                 "' are left out: the dataset has no truth for them, or for their start");
  return all;
}

// The times of the year of what is forecast and has truth.
std::vector<verify::YearTime> times_of(const std::vector<ForecastSet>& sets,
                                       const verify::ScoredParts& parts,
                                       const data::DatasetInfo& truth) {
  std::set<verify::YearTime> times;
  for (const ForecastSet& set : sets)
    for (const int64_t start_s : set.starts_s)
      for (const int64_t lead_s : parts.lead_times_s)
        if (data::find_row(truth.dates_s, truth.missing_rows, start_s + lead_s) >= 0)
          times.insert(verify::year_time(start_s + lead_s));
  return {times.begin(), times.end()};
}

verify::ClimatologySettings settings_of(const VerifyCommand& command, int64_t threads) {
  if (command.climatology_window_days % 2 == 0)
    throw ConfigError("--climatology-window",
                      concat(command.climatology_window_days, " days have no middle"),
                      "an odd number of days");
  verify::ClimatologySettings settings{.window_days = command.climatology_window_days,
                                       .first_s = std::nullopt,
                                       .last_s = std::nullopt,
                                       .threads = threads};
  const std::string& period = command.climatology_period;
  if (period.empty()) return settings;
  const size_t slash = period.find('/');
  if (slash == std::string::npos)
    throw ConfigError("--climatology-period", concat("'", period, "' is no period"),
                      "FIRST/LAST: 1990/2019, or 1990-01-01/2019-12-31");
  const char* option = "--climatology-period";
  settings.first_s = parsed(option, [&] { return parse_date(period.substr(0, slash)); });
  settings.last_s =
      parsed(option, [&] { return parse_date(period.substr(slash + 1), DateEnd::kEnd); });
  return settings;
}

// A climatology, and where it stays if it is computed for this verification only.
struct UsedClimatology {
  std::optional<TemporaryFolder> folder;
  std::optional<verify::Climatology> climatology;
};

// Opens or computes what --climatology asks for, if it does.
void open_climatology(const VerifyCommand& command, const std::vector<ForecastSet>& sets,
                      const verify::ScoredParts& parts, const verify::ScoreSetup& setup,
                      UsedClimatology& used) {
  if (command.climatology.empty()) return;
  const verify::DatasetCells& cells = setup.truth.cells();
  const verify::ForecastReader first(sets.front().files.front());
  const std::vector<verify::YearTime> times = times_of(sets, parts, cells.dataset().info());
  fs::path path = command.climatology;
  const verify::ClimatologySettings settings = settings_of(command, setup.threads);
  if (command.climatology == "compute") {
    const std::string& cache =
        command.climatology_cache.empty() ? command.out : command.climatology_cache;
    if (cache.empty()) used.folder.emplace();
    const fs::path folder = cache.empty() ? used.folder->path() : fs::path(cache);
    make_directories(folder);
    path = folder / concat("climatology-",
                           verify::climatology_key(cells, first, parts.variables, times, settings),
                           ".nc");
    if (path_exists(path))
      log::info("climatology of '", path.string(), "'");
    else
      verify::compute_climatology(cells, first, parts.variables, times, settings, path);
  }
  used.climatology.emplace(path);
  used.climatology->check(first, parts.variables, times);
}

// True if a forecast is valid in it, wherever.
bool has_forecasts(const verify::SeasonScores& season) {
  return std::any_of(season.scores.begin(), season.scores.end(),
                     [](const verify::MeanScores& scores) { return scores.num_forecasts > 0; });
}

void print_tables(const verify::Verification& found) {
  for (size_t region = 0; region < found.parts.regions.size(); ++region) {
    for (size_t season = 0; season < found.seasons.size(); ++season) {
      if (!has_forecasts(found.seasons[season])) continue;
      std::printf("%s\n", verify::to_table(found, region, season).c_str());
      const std::string events = verify::thresholds_table(found, region, season);
      if (!events.empty()) std::printf("%s\n", events.c_str());
    }
  }
  std::fflush(stdout);
}

// Writes JSON Lines and a table of results beside the scores, if there is a folder for them.
void write_beside(const VerifyCommand& command, const std::string& name,
                  const std::vector<nlohmann::ordered_json>& rows, const std::string& csv) {
  if (command.out.empty()) return;
  make_directories(command.out);
  const fs::path folder(command.out);
  write_file_atomic(folder / (name + ".jsonl"), verify::to_json_lines(rows));
  write_file_atomic(folder / (name + ".csv"), csv);
}

// What the command asks for of spectra, checked before anything is scored; nothing if it does not.
std::optional<verify::FieldSpectra> spectra_for(const VerifyCommand& command,
                                                const verify::ScoredParts& parts,
                                                const verify::ForecastReader& first) {
  if (command.spectra.empty()) return std::nullopt;
  verify::FieldSpectra spectra = verify::spectra_of(first, "--spectra");
  verify::spectrum_kinds(each_once(command.spectra), spectra, parts.regions, "--spectra");
  if (command.out.empty())
    throw ConfigError("--spectra", "spectra are written to files, and no folder is named",
                      "--out DIR");
  return spectra;
}

void score_spectra(const VerifyCommand& command, const verify::FieldSpectra& spectra,
                   const ForecastSet& set, const verify::ScoredParts& parts,
                   const verify::ScoreSetup& scores) {
  const verify::SpectrumSetup setup{
      spectra,
      verify::spectrum_kinds(each_once(command.spectra), spectra, parts.regions, "--spectra"),
      scores.truth, scores.threads};
  auto sums = verify::make_spectrum_sums(setup, parts);
  for (const fs::path& file : set.files)
    verify::add_forecast(verify::ForecastReader(file), setup, parts, sums);
  const auto rows = verify::spectrum_rows(setup, parts, sums);
  write_beside(command, "spectra", rows, verify::spectra_csv(rows));
  log::info("spectra in '", command.out, "'");
}

// The observations that the command names, with what a user should know of them.
std::optional<verify::Observations> observations_for(const VerifyCommand& command,
                                                     const verify::ScoredParts& parts) {
  if (command.stations.empty()) return std::nullopt;
  verify::Observations found = verify::read_observations(command.stations, parts.variables);
  log::info("'", found.path, "': ", found.stations.size(), " stations, ", found.values.size(),
            " dates, ", found.variables.size(), " variables that are scored",
            found.has_heights ? "; values are not corrected for the heights of stations" : "");
  return found;
}

void score_stations(const VerifyCommand& command, const verify::Observations& observations,
                    const ForecastSet& set, const verify::ScoredParts& parts, int64_t threads) {
  const verify::ForecastReader first(set.files.front());
  const auto method = command.station_method == "nearest" ? verify::PointMethod::kNearest
                                                          : verify::PointMethod::kInverseDistance;
  const verify::PointMap map(first, observations.stations, method);
  if (map.num_outside() > 0)
    log::warning(map.num_outside(), " of ", observations.stations.size(), " stations of '",
                 observations.path, "' are outside of the cells of the forecasts: left out");
  verify::StationSetup setup{observations, map, {}, parts.lead_times_s, threads};
  for (const verify::Region& region : parts.regions)
    if (region.part == verify::RegionPart::kAll) setup.regions.push_back(region);
  auto sums = verify::make_station_sums(setup);
  for (const fs::path& file : set.files)
    verify::add_forecast(verify::ForecastReader(file), setup, sums);
  const auto rows = verify::station_rows(setup, sums, first.num_members());
  if (rows.empty())
    throw DataError(concat("'", observations.path, "' has no observation at a valid date, inside ",
                           "of the cells, of the forecasts of '", set.folder, "'"));
  for (size_t region = 0; region < setup.regions.size(); ++region) {
    const std::string table = verify::station_table(setup, sums, region);
    if (!table.empty()) std::printf("%s\n", table.c_str());
  }
  std::fflush(stdout);
  write_beside(command, "stations", rows, verify::to_csv(rows));
}

void write_scores(const std::string& out, const verify::Verification& found) {
  const fs::path folder(out);
  const auto rows = verify::score_rows(found);
  write_file_atomic(folder / "scores.jsonl", verify::to_json_lines(rows));
  write_file_atomic(folder / "scores.csv", verify::to_csv(rows));
  if (!found.parts.thresholds.empty())
    write_file_atomic(folder / "thresholds.csv", verify::thresholds_csv(rows));
  verify::write_score_netcdf(folder / "scores.nc", found, rows);
}

}  // namespace

const data::Dataset& truth_of(const std::vector<DataParts>& datasets,
                              const verify::ForecastReader& forecast) {
  if (datasets.size() == 1) return *datasets.front().validation;
  for (const DataParts& data : datasets) {
    try {
      verify::cells_in(data.validation->info(), forecast);
      return *data.validation;
    } catch (const DataError&) {  // those of another dataset
    }
  }
  throw DataError(concat("no dataset of the run has the cells of '", forecast.path(), "'"));
}

int run_verify_command(const VerifyCommand& command, const RunConfig& config) {
  std::vector<ForecastSet> sets{forecasts_of(command.forecasts)};
  if (!command.against.empty()) sets.push_back(forecasts_of(command.against));
  const verify::ForecastReader first(sets.front().files.front());
  if (!command.out.empty()) check_writable(command.out);
  verify::Verification found{.parts = parts_to_score(command, first),
                             .num_members = first.num_members()};
  const std::vector<DataParts> datasets = make_datasets(config, open_stores(config));
  const int64_t threads = command.threads > 0 ? command.threads : usable_cores();
  const data::Dataset& dataset = truth_of(datasets, first);
  verify::Truth truth(dataset, first, found.parts.variables,
                      truth_map(dataset.info(), first, command.interpolation, threads));
  verify::ScoreSetup setup{.truth = truth,
                           .weights = weights_of(command, found.parts, first, truth.cells()),
                           .threads = threads};
  const auto spectra = spectra_for(command, found.parts, first);
  const auto observations = observations_for(command, found.parts);
  UsedClimatology used;
  open_climatology(command, sets, found.parts, setup, used);
  if (used.climatology) setup.climatology = &*used.climatology;
  std::vector<std::vector<verify::ForecastScores>> scores;
  for (const ForecastSet& set : sets)
    scores.push_back(score_all(set, setup, found.parts));
  scores.resize(2);
  std::vector<std::string> seasons{"all"};
  if (command.seasons) seasons = {"all", "DJF", "MAM", "JJA", "SON"};
  for (const std::string& season : seasons)
    found.seasons.push_back(verify::summarise({season, used.climatology.has_value()}, found.parts,
                                              scores[0], scores[1]));
  print_tables(found);
  if (spectra) score_spectra(command, *spectra, sets.front(), found.parts, setup);
  if (observations)
    score_stations(command, *observations, sets.front(), found.parts, setup.threads);
  if (command.out.empty()) return kSuccess;
  make_directories(command.out);
  write_scores(command.out, found);
  log::info("scores of ", scores[0].size(), " forecasts in '", command.out, "'");
  return kSuccess;
}

}  // namespace aifs::app
