// SPDX-License-Identifier: Apache-2.0
#include "app/verify_tools/verify_command.h"

#include <algorithm>
#include <cstdio>

#include "app/run/exit_codes.h"
#include "app/run/make_data.h"
#include "core/check.h"
#include "core/file_io.h"
#include "core/log.h"
#include "core/time.h"
#include "verify/score_files.h"

namespace aifs::app {

namespace {

verify::ScoredParts parts_to_score(const VerifyCommand& command,
                                   const verify::ForecastReader& forecast) {
  verify::ScoredParts parts;
  for (const std::string& text : command.regions)
    parts.regions.push_back(verify::parse_region(text, "--regions"));
  parts.variables = command.variables.empty() ? forecast.variables() : command.variables;
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
    int64_t lead_s = 0;
    try {
      lead_s = parse_duration(text);
    } catch (const Error& error) {
      throw ConfigError("--lead-times", error.what());
    }
    const std::vector<int64_t>& known = forecast.lead_times_s();
    if (std::find(known.begin(), known.end(), lead_s) == known.end())
      throw ConfigError("--lead-times",
                        concat("'", forecast.path(), "' has no fields at ", text, ": it has ",
                               known.size(), " lead times up to ", format_lead_time(known.back())));
    parts.lead_times_s.push_back(lead_s);
  }
  std::sort(parts.lead_times_s.begin(), parts.lead_times_s.end());
  return parts;
}

// The dataset that has the variables of the forecasts; of several, the one whose cells they have.
const data::Dataset& truth_of(const std::vector<DataParts>& datasets,
                              const verify::ForecastReader& forecast) {
  for (const DataParts& data : datasets) {
    const data::DatasetInfo& info = data.validation->info();
    if (datasets.size() == 1 || info.num_nodes() == forecast.num_cells()) return *data.validation;
  }
  throw DataError(concat("'", forecast.path(), "' has ", forecast.num_cells(),
                         " cells, as none of the datasets of the run has"));
}

std::vector<verify::ForecastScores> score_all(const std::string& folder,
                                              const verify::ScoredParts& parts,
                                              const data::Dataset& truth) {
  std::vector<verify::ForecastScores> all;
  size_t without_truth = 0, fields = 0;
  for (const fs::path& file : verify::forecast_files(folder)) {
    const verify::ForecastReader forecast(file);
    all.push_back(verify::score_forecast(forecast, truth, parts));
    for (size_t t = 0; t < parts.lead_times_s.size(); ++t, ++fields)
      if (!all.back().scores[parts.place(0, t, 0)]) ++without_truth;
  }
  if (without_truth == fields)
    throw DataError(concat("no forecast of '", folder, "' has truth in '", truth.info().name, "'"),
                    concat("it has dates from ", format_date(truth.info().dates_s.front()), " to ",
                           format_date(truth.info().dates_s.back())));
  if (without_truth > 0)
    log::warning(without_truth, " of ", fields, " dates of '", folder,
                 "' are left out: the dataset has no truth for them, or for their start");
  return all;
}

}  // namespace

int run_verify_command(const VerifyCommand& command, const RunConfig& config) {
  const std::vector<fs::path> files = verify::forecast_files(command.forecasts);
  const verify::ForecastReader first(files.front());
  verify::Verification found{.parts = parts_to_score(command, first),
                             .num_members = first.num_members(),
                             .scores = {},
                             .against_persistence = {},
                             .against_other = {}};
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
