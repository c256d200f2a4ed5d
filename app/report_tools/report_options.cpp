// SPDX-License-Identifier: Apache-2.0
#include "app/report_tools/report_options.h"

#include <CLI/CLI.hpp>

namespace aifs::app {

namespace {

constexpr const char* kReportFooter = R"(Examples
  aifs-train report runs/a
  aifs-train report runs/a runs/b --out comparison.html
  aifs-train report runs/a --scores scores --forecasts forecasts --truth runs/a

The page is one file that needs no network. docs/report.md says what is in it.)";

}  // namespace

CLI::App* add_report_command(CLI::App& app, ReportCommand& c) {
  CLI::App* command = app.add_subcommand(
      "report", "write a page about runs, their scores and forecasts (docs/report.md)");
  command->fallthrough();  // --config and --set may follow
  command->footer(kReportFooter);
  const auto list = [&](const char* name, std::vector<std::string>& values, const char* text) {
    return command->add_option(name, values, text)
        ->delimiter(',')
        ->take_all()
        ->allow_extra_args(false);
  };
  command->add_option("RUN", c.runs, "run folders; several are shown side by side")->required();
  list("--scores", c.scores, "what `verify --out` wrote; the first is compared with the others")
      ->type_name("DIR,...");
  list("--forecasts", c.forecasts, "what `forecast` wrote, for maps of one start date")
      ->type_name("DIR,...");
  command
      ->add_option("--truth", c.truth,
                   "run or checkpoint whose dataset is the truth of the maps; or --config FILE")
      ->type_name("RUN");
  command->add_option("--date", c.date,
                      "start of the forecasts of the maps; the first if not said");
  list("--variables", c.variables, "of the maps; the first 8 if not said");
  list("--lead-times", c.lead_times, "of the maps; 12, evenly chosen, if not said");
  command->add_option("--title", c.title, "of the page");
  command->add_option("--out", c.out, "file to write")->type_name("FILE")->capture_default_str();
  command->add_option("--max-mb", c.max_mb, "most megabytes of the page: maps have fewer points")
      ->capture_default_str();
  return command;
}

}  // namespace aifs::app
