// SPDX-License-Identifier: Apache-2.0
#include "app/report_tools/report_command.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

#include "app/data_tools/parsed_option.h"
#include "app/run/exit_codes.h"
#include "app/run/make_data.h"
#include "app/run/versions.h"
#include "app/verify_tools/verify_command.h"
#include "core/check.h"
#include "core/file_io.h"
#include "core/folder_trial.h"
#include "core/join.h"
#include "core/log.h"
#include "core/time.h"
#include "report/maps.h"
#include "report/report_page.h"
#include "report/short_names.h"

namespace aifs::app {

namespace {

// The forecast of a folder that starts from a date, or the first one.
std::unique_ptr<verify::ForecastReader> open_forecast(const std::string& folder,
                                                      std::optional<int64_t> start_s) {
  const std::vector<fs::path> files = verify::forecast_files(folder);
  if (!start_s) return std::make_unique<verify::ForecastReader>(files.front());
  for (const fs::path& file : files) {
    auto reader = std::make_unique<verify::ForecastReader>(file);
    if (reader->start_s() == *start_s) return reader;
  }
  throw ConfigError(
      "--date", concat("no forecast of '", folder, "' starts from ", format_date(*start_s)),
      concat("it has ", files.size(), ", the first is ", files.front().filename().string()));
}

report::MapChoice wanted_maps(const ReportCommand& command) {
  report::MapChoice wanted{command.variables, {}};
  for (const std::string& text : command.lead_times)
    wanted.lead_times_s.push_back(parsed("--lead-times", [&] { return parse_duration(text); }));
  return wanted;
}

// The maps of all forecasts.
nlohmann::ordered_json make_maps(const ReportCommand& command, int64_t most_bytes,
                                 const std::function<RunConfig()>& truth_config) {
  std::optional<int64_t> start_s;
  if (!command.date.empty()) start_s = parsed("--date", [&] { return parse_date(command.date); });
  std::vector<std::unique_ptr<verify::ForecastReader>> files;
  std::vector<report::NamedForecast> forecasts;
  const std::vector<std::string> names = report::short_names(command.forecasts);
  for (size_t i = 0; i < names.size(); ++i) {
    files.push_back(open_forecast(command.forecasts[i], start_s));
    if (!start_s) start_s = files.front()->start_s();
    forecasts.push_back({names[i], files.back().get()});
  }
  const report::MapChoice choice = report::choose_maps(forecasts, wanted_maps(command));
  if (!truth_config) return report::maps_json(forecasts, choice, nullptr, most_bytes);
  const RunConfig config = truth_config();
  const std::vector<DataParts> datasets = make_datasets(config, open_stores(config));
  const data::Dataset& dataset = truth_of(datasets, *files.front());
  verify::Truth truth(dataset, *files.front(), choice.variables);
  return report::maps_json(forecasts, choice, &truth, most_bytes);
}

void check_options(const ReportCommand& c) {
  if (!(c.max_mb >= 0.5 && c.max_mb <= 1000.0))
    throw ConfigError("--max-mb", concat(c.max_mb, " is no size of a page: from 0.5 to 1000"));
  if (c.forecasts.empty() &&
      !(c.truth.empty() && c.date.empty() && c.variables.empty() && c.lead_times.empty()))
    throw ConfigError("--forecasts",
                      "--truth, --date, --variables and --lead-times are about maps of forecasts, "
                      "and no forecasts were named");
  for (size_t i = 0; i < c.runs.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (fs::path(c.runs[i]).lexically_normal() == fs::path(c.runs[k]).lexically_normal())
        throw ConfigError("RUN", concat("'", c.runs[i], "' is named twice"));
  std::error_code ignored;
  if (const auto there = fs::symlink_status(c.out, ignored);
      fs::exists(there) && !fs::is_regular_file(there)) {
    throw ConfigError("--out", concat("'", c.out, "' is there and is no regular file"),
                      "name a new file, or an old one that may be replaced");
  }
  check_writable(fs::path(c.out).parent_path().empty() ? fs::path(".")
                                                       : fs::path(c.out).parent_path());
}

std::string now_text() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string text = format_date(std::chrono::duration_cast<std::chrono::seconds>(now).count());
  text.replace(text.find('T'), 1, " ");
  return text.substr(0, 16) + " UTC";
}

}  // namespace

int run_report_command(const ReportCommand& command,
                       const std::function<RunConfig()>& truth_config) {
  check_options(command);
  report::ReportInput input;
  for (const std::string& run : command.runs)
    input.runs.push_back(report::read_run_folder(run));
  for (const std::string& scores : command.scores)
    input.scores.push_back(report::read_scores(scores));
  const std::vector<std::string> score_names = report::short_names(command.scores);
  for (size_t i = 0; i < score_names.size(); ++i)
    input.scores[i].name = score_names[i];
  const std::vector<std::string> names = report::short_names(command.runs);
  for (size_t i = 0; i < names.size(); ++i)
    input.runs[i].name = names[i];
  input.title = command.title.empty() ? join(names, " and ") : command.title;
  input.made_by = concat("aifs-train ", program_version());
  input.made_at = now_text();
  const auto most_bytes = static_cast<int64_t>(command.max_mb * 1e6);
  std::string page = report::report_page(input);
  if (!command.forecasts.empty()) {
    constexpr double kRoom = 0.97;  // numbers beside the fields
    const auto room = static_cast<int64_t>(kRoom * static_cast<double>(most_bytes)) -
                      static_cast<int64_t>(page.size());
    input.maps = make_maps(command, std::max<int64_t>(0, room), truth_config);
    page = report::report_page(input);
  }
  if (static_cast<int64_t>(page.size()) > most_bytes)
    log::warning("the page is ", page.size() / 1000000, " MB long, more than --max-mb");
  const fs::path out(command.out);
  if (out.has_parent_path()) make_directories(out.parent_path());
  write_file_atomic(out, page);
  log::info("wrote '", command.out, "' (", (page.size() + 500) / 1000,
            " kB): open it in a browser");
  return kSuccess;
}

}  // namespace aifs::app
