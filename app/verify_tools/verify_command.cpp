// SPDX-License-Identifier: Apache-2.0
#include "app/verify_tools/verify_command.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "app/data_tools/parsed_option.h"
#include "app/run/exit_codes.h"
#include "app/run/make_data.h"
#include "core/check.h"
#include "core/file_io.h"
#include "core/folder_trial.h"
#include "core/log.h"
#include "core/time.h"
#include "verify/score_files.h"

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
  for (const std::string& text : each_once(command.regions))
    parts.regions.push_back(verify::parse_region(text, "--regions"));
  parts.variables = command.variables.empty() ? forecast.variables() : each_once(command.variables);
  for (const std::string& name : parts.variables) {
    const std::vector<std::string>& known = forecast.variables();
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw ConfigError("--variables", concat("'", forecast.path(), "' has no variable '", name, "'"),
                      nearest_names(name, known));
  }
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

// The dataset that has the cells of a forecast.
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

void check_regions(const verify::ScoredParts& parts, const verify::ForecastReader& forecast) {
  for (const verify::Region& region : parts.regions) {
    const std::vector<double> weights =
        verify::region_weights(region, forecast.latitudes_deg(), forecast.longitudes_deg());
    if (std::any_of(weights.begin(), weights.end(), [](double w) { return w > 0.0; })) continue;
    throw ConfigError("--regions",
                      concat("no cell of '", forecast.path(), "' is in '", region.name, "'"));
  }
}

std::vector<verify::ForecastScores> score_all(const std::string& folder,
                                              const verify::ScoredParts& parts,
                                              const data::Dataset& dataset) {
  const std::vector<fs::path> files = verify::forecast_files(folder);
  const verify::ForecastReader first(files.front());
  verify::Truth truth(dataset, first, parts.variables);
  const data::DatasetInfo& info = dataset.info();
  std::vector<verify::ForecastScores> all;
  std::map<int64_t, std::string> by_start;
  size_t without_truth = 0, fields = 0;
  for (const fs::path& file : files) {
    const verify::ForecastReader forecast(file);
    const auto [same, is_new] = by_start.try_emplace(forecast.start_s(), file.string());
    if (!is_new)
      throw DataError(concat("'", file.string(), "' and '", same->second, "' start from one date"),
                      "verify one forecast of a date at a time");
    if (forecast.num_members() != first.num_members())
      throw DataError(concat("'", file.string(), "' has ", forecast.num_members(), " members, '",
                             first.path(), "' ", first.num_members()),
                      "verify ensembles of one size at a time");
    all.push_back(verify::score_forecast(forecast, truth, parts));
    fields += parts.lead_times_s.size();
    without_truth += all.back().num_without_truth;
  }
  if (without_truth == fields)
    throw DataError(concat("no forecast of '", folder, "' has truth in '", info.name, "'"),
                    concat("it has dates from ", format_date(info.dates_s.front()), " to ",
                           format_date(info.dates_s.back())));
  if (without_truth > 0)
    log::warning(without_truth, " of ", fields, " dates of '", folder,
                 "' are left out: the dataset has no truth for them, or for their start");
  return all;
}

}  // namespace

int run_verify_command(const VerifyCommand& command, const RunConfig& config) {
  const std::vector<fs::path> files = verify::forecast_files(command.forecasts);
  const verify::ForecastReader first(files.front());
  if (!command.out.empty()) check_writable(command.out);
  verify::Verification found{.parts = parts_to_score(command, first),
                             .num_members = first.num_members(),
                             .scores = {},
                             .against_persistence = {},
                             .against_other = {}};
  check_regions(found.parts, first);
  const std::vector<DataParts> datasets = make_datasets(config, open_stores(config));
  const data::Dataset& truth = truth_of(datasets, first);
  const std::vector<verify::ForecastScores> scores =
      score_all(command.forecasts, found.parts, truth);
  found.scores = verify::mean_scores(scores, found.parts.size());
  found.against_persistence = verify::skill_against_persistence(scores, found.parts.size());
  if (!command.against.empty())
    found.against_other = verify::skill_against(
        scores, score_all(command.against, found.parts, truth), found.parts.size());
  for (size_t region = 0; region < found.parts.regions.size(); ++region)
    std::printf("%s\n", verify::to_table(found, region).c_str());
  std::fflush(stdout);
  if (command.out.empty()) return kSuccess;
  make_directories(command.out);
  write_file_atomic(fs::path(command.out) / "scores.jsonl", verify::to_json_lines(found));
  write_file_atomic(fs::path(command.out) / "scores.csv", verify::to_csv(found));
  log::info("scores of ", scores.size(), " forecasts in '", command.out, "'");
  return kSuccess;
}

}  // namespace aifs::app
