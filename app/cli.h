// SPDX-License-Identifier: Apache-2.0
// The command line of aifs-train.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli_pages.h"
#include "app/data_tools/options.h"
#include "app/forecast_tools/forecast_options.h"
#include "app/graph_tools/options.h"
#include "app/hang_tools/explain_hang.h"
#include "app/report_tools/report_options.h"
#include "app/run/plan_request.h"
#include "app/verify_tools/verify_options.h"
#include "app/watch_tools/watch_command.h"

namespace aifs::app {

// `export` and `import`: a model in a form that other programs read.
struct ExchangeCommand {
  bool import = false;
  std::string format;
  std::string from, to;
  bool weights_only = false;       // import: without moments and step of a training
  bool allow_differences = false;  // import: --config may be another model than the file's
};

// `import-config`: what a configuration of Anemoi's means here.
struct ImportConfigCommand {
  std::string file;
  std::string report;  // file for what was not translated, as JSON; empty: standard error
  bool strict = false;
};

struct CommandLine {
  std::string config;
  std::vector<std::string> overrides;  // --set path.to.key=value, in order
  bool resume = false;
  std::string resume_from;  // run or checkpoint folder; empty: run.dir
  bool validate_only = false;
  std::string checkpoint;  // of --validate-only; empty: the latest of run.dir
  bool no_data = false;    // of --check-config: without what only the machine of the run has
  bool check_config = false, print_config = false, print_schema = false, print_reference = false;
  bool dry_run = false;
  PlanRequest plan;  // of --dry-run
  bool version = false;
  bool print_man = false;
  std::string print_completion;       // shell; empty: none
  std::optional<ProgramPages> pages;  // for these two, without keys and version
  std::optional<ExchangeCommand> exchange;
  std::optional<ImportConfigCommand> import_config;
  std::optional<ForecastCommand> forecast;
  std::optional<VerifyCommand> verify;
  std::optional<ReportCommand> report;
  std::optional<DataCommand> data;
  std::optional<GraphCommand> graph;
  std::optional<WatchCommand> watch;
  std::optional<ExplainHangCommand> explain_hang;
};

// Parses; on --help or a mistake gives the exit code, and what to print, instead.
struct ParsedCommandLine {
  CommandLine command;
  std::optional<int> exit_code;
  std::string out, err;  // for standard output and error
};
ParsedCommandLine parse_command_line(int argc, char** argv);

}  // namespace aifs::app
