// SPDX-License-Identifier: Apache-2.0
#include "app/cli.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "app/data_tools/cli_checks.h"
#include "app/run/exit_codes.h"

namespace aifs::app {

namespace {

constexpr const char* kFooter = R"(Examples
  aifs-train --config configs/demo.json
  aifs-train --config configs/o96.json --set run.dir=runs/a --set train.max_steps=60
  aifs-train --config configs/o96.json --resume            go on from the latest checkpoint
  aifs-train --config configs/o96.json --validate-only     score the latest checkpoint
  aifs-train watch runs/a                                  how a run goes on, in a terminal
  aifs-train explain-hang runs/a                           who waited for whom, after exit code 6
  aifs-train forecast runs/a --dates 2020-01-31T00 --lead-time 10d --out forecasts
  aifs-train report runs/a runs/b --out report.html        a page about runs, scores, forecasts
  aifs-train export --format anemoi runs/a OUT             a model for Anemoi
  aifs-train import last.ckpt runs/b                       a checkpoint of Anemoi as a run
  aifs-train import-config resolved.yaml > run.json        a configuration of Anemoi as one of ours
  aifs-train data info DATASET.zarr                        what is in a dataset; data --help: more
  aifs-train graph plot --config configs/demo.json --out globe.html
                                                           the graph as a globe in a browser
  aifs-train --config configs/o96.json --set graph.grid=o96 --variables 88,13,1 --dry-run --ranks 64
                                                           plan a run on paper, without its dataset

Exit codes
  0 success   1 internal error   2 usage or configuration   3 data, graph or checkpoint
  4 numerical (NaN, infinity)    5 interrupted after a checkpoint, go on with --resume
  6 waited too long for another rank
  7 import-config --strict: some keys cannot be honoured
  8 graph compare: the graphs differ)";

CLI::App* add_exchange(CLI::App& app, const char* name, const char* what, const char* from_name,
                       const char* to_name, ExchangeCommand& exchange) {
  CLI::App* command = app.add_subcommand(name, what);
  command->fallthrough();  // --config and --set may follow
  command->add_option("--format", exchange.format, "form of the model outside")
      ->check(CLI::IsMember({"anemoi"}))
      ->default_val("anemoi");
  command->add_option("FROM", exchange.from, from_name)->required();
  command->add_option("TO", exchange.to, to_name)->required();
  return command;
}

CLI::App* add_import(CLI::App& app, ExchangeCommand& exchange) {
  CLI::App* command = add_exchange(
      app, "import", "make a run of a model of Anemoi: a checkpoint to start from",
      "checkpoint of Anemoi (.ckpt, of training or inference), or a folder that export "
      "or tools/anemoi_checkpoint.py wrote",
      "new run", exchange);
  command->add_flag("--weights-only", exchange.weights_only,
                    "leave the moments and the step of a training checkpoint");
  command->add_flag("--allow-differences", exchange.allow_differences,
                    "warn of what differs between the model of the checkpoint and --config, or is "
                    "not known here, instead of refusing it");
  return command;
}

CLI::App* add_import_config(CLI::App& app, ImportConfigCommand& c) {
  CLI::App* command = app.add_subcommand(
      "import-config",
      "print the configuration that one of a training of Anemoi's means, and name every key that "
      "is not honoured (docs/anemoi_configs.md)");
  command->add_option("FILE", c.file, "what `anemoi-training config dump` wrote: YAML or JSON")
      ->required();
  command
      ->add_option("--report", c.report,
                   "write what becomes of the other keys here, as JSON, not to standard error")
      ->type_name("REPORT");
  command->add_flag("--strict", c.strict,
                    "exit code 7 if a key that changes what is trained is not honoured");
  return command;
}

CLI::App* add_watch(CLI::App& app, WatchCommand& c) {
  CLI::App* command =
      app.add_subcommand("watch",
                         "show how runs go on, until q or ctrl-c; reads their folders only "
                         "(docs/monitoring.md)");
  command->add_option("RUN", c.runs, "run folders, of runs that go on or have ended")->required();
  command->add_flag("--once", c.once,
                    "print once, as is done where standard output is no terminal");
  command->add_option("--every", c.every_s, "seconds between two looks at the files")
      ->check(CLI::Range(0.1, 3600.0))
      ->check([](const std::string& text) {  // which lies in any range
        return std::isnan(std::atof(text.c_str())) ? std::string("is no number") : std::string();
      })
      ->capture_default_str();
  command->add_option("--width", c.columns, "columns, if not those of the terminal")
      ->check(CLI::Range(20, 1000));
  return command;
}

CLI::App* add_explain_hang(CLI::App& app, ExplainHangCommand& c) {
  CLI::App* command = app.add_subcommand(
      "explain-hang",
      "say who waited for whom, in what step and operation, when a run ended because nothing moved "
      "(docs/faults.md)");
  command->add_option("RUN", c.run, "run folder")->required();
  return command;
}

void add_plan_options(CLI::App& app, CommandLine& c) {
  constexpr const char* kGroup = "Planning";
  PlanRequest& plan = c.plan;
  auto* dry_run =
      app.add_flag(
             "--dry-run", c.dry_run,
             "print memory, communication, arithmetic and time of a step, estimated without a "
             "GPU and without allocating the model, and stop")
          ->group(kGroup);
  const auto add = [&](const char* name, auto& value, const char* text, const char* type) {
    return app.add_option(name, value, text)->type_name(type)->needs(dry_run)->group(kGroup);
  };
  add("--ranks", plan.ranks, "ranks of the planned run", "N")->check(at_least(1));
  add("--layout", plan.layout,
      "one value of the layout: model, data, tensor, pipeline, sharding, bucket_mb, first_piece, "
      "compression, powersgd_rank; repeatable",
      "key=value")
      ->take_all()
      ->allow_extra_args(false);
  add("--machine", plan.machine, "its card and links, or what aifs-bench comm measured", "FILE");
  add("--variables", plan.variables, "prognostic, forcing and diagnostic ones, without a dataset",
      "P,F,D")
      ->delimiter(',');
  add("--scaling", plan.scaling_ranks, "tables of weak and strong scaling up to so many ranks", "N")
      ->check(at_least(1));
  add("--plan-json", plan.json, "write the plan here", "FILE");
  add("--plan-svg", plan.svg, "write a plot of the scaling here", "FILE");
}

// Options that may be given without a value.
struct StartOptions {
  const CLI::Option *resume, *validate;
};

StartOptions add_start_options(CLI::App& app, CommandLine& c) {
  app.add_option("--config", c.config, "configuration file (JSON with comments)")
      ->type_name("FILE");
  app.add_option("--set", c.overrides, "override one value of the configuration; repeatable")
      ->type_name("path.to.key=value")
      ->take_all()
      ->allow_extra_args(false);
  auto* resume =
      app.add_option("--resume", c.resume_from,
                     "go on from the latest sound checkpoint of run.dir, or of DIR (a run "
                     "or a checkpoint folder); starts afresh if run.dir has none")
          ->type_name("[DIR]")
          ->expected(0, 1);
  auto* validate = app.add_option("--validate-only", c.checkpoint,
                                  "score the latest sound checkpoint of run.dir, or of a run or "
                                  "checkpoint folder, and stop")
                       ->type_name("[CHECKPOINT]")
                       ->expected(0, 1);
  resume->excludes(validate);
  auto* check = app.add_flag("--check-config", c.check_config,
                             "check the configuration and what it names, and stop: dataset, graph, "
                             "weights, run folder, device; what is not here is an error");
  app.add_flag("--no-data", c.no_data,
               "--check-config without dataset, graph file, weights and GPU")
      ->needs(check);
  return {resume, validate};
}

void add_print_options(CLI::App& app, CommandLine& c) {
  app.add_flag("--print-config", c.print_config, "print the effective configuration and stop");
  app.add_flag("--print-schema", c.print_schema,
               "print the JSON Schema of configurations and stop");
  app.add_flag("--print-reference", c.print_reference,
               "print the reference of all keys (Markdown) and stop");
  app.add_flag("--print-man", c.print_man, "print the manual page (troff) and stop");
  app.add_option("--print-completion", c.print_completion,
                 "print what completes command lines in a shell, bash or zsh, and stop")
      ->type_name("SHELL")
      ->check(CLI::IsMember({"bash", "zsh"}));
  app.add_flag("--version", c.version, "print versions of the program and its libraries and stop");
}

OptionPage page_of(const CLI::Option& option) {
  OptionPage page{.names = {},
                  .value = option.get_type_name(),
                  .text = option.get_description(),
                  .is_positional = option.get_positional()};
  if (page.is_positional) page.names.push_back(option.get_name(/*positional=*/true));
  for (const std::string& name : option.get_snames())
    page.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames())
    page.names.push_back("--" + name);
  if (option.get_expected_max() == 0) page.value.clear();  // a flag
  return page;
}

// The command and those below it.
void add_pages(const CLI::App& app, const std::string& name, std::vector<CommandPage>& pages) {
  CommandPage page{.name = name, .text = app.get_description(), .options = {}};
  for (const CLI::Option* option : app.get_options())
    page.options.push_back(page_of(*option));
  pages.push_back(std::move(page));
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; }))
    add_pages(*below, (name.empty() ? "" : name + " ") + below->get_name(), pages);
}

ProgramPages pages_of(const CLI::App& app) {
  ProgramPages pages{.commands = {}, .footer = kFooter, .version = {}, .keys = {}};
  add_pages(app, "", pages.commands);
  return pages;
}

}  // namespace

ParsedCommandLine parse_command_line(int argc, char** argv) {
  ParsedCommandLine parsed;
  CommandLine& c = parsed.command;
  CLI::App app("Trains data-driven weather models of the Anemoi/AIFS kind.", "aifs-train");
  app.footer(kFooter);
  const StartOptions run = add_start_options(app, c);
  add_plan_options(app, c);
  add_print_options(app, c);
  ExchangeCommand exchange;
  const auto* to_others = add_exchange(
      app, "export", "write a model for Anemoi: a folder for tools/anemoi_checkpoint.py",
      "checkpoint or run", "new folder", exchange);
  const auto* from_others = add_import(app, exchange);
  ImportConfigCommand import_config;
  const auto* import_command = add_import_config(app, import_config);
  ForecastCommand forecast;
  const auto* forecast_command = add_forecast_command(app, forecast);
  VerifyCommand verify;
  const auto* verify_command = add_verify_command(app, verify);
  ReportCommand report;
  const auto* report_command = add_report_command(app, report);
  DataCommand data;
  const auto* data_command = add_data_commands(app, data);
  GraphCommand graph;
  const auto* graph_command = add_graph_commands(app, graph);
  WatchCommand watch;
  const auto* watch_command = add_watch(app, watch);
  ExplainHangCommand explain_hang;
  const auto* hang_command = add_explain_hang(app, explain_hang);
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
    exchange.import = from_others->parsed();
    if (to_others->parsed() || from_others->parsed()) c.exchange = exchange;
    if (import_command->parsed()) c.import_config = import_config;
    if (forecast_command->parsed()) c.forecast = forecast;
    if (verify_command->parsed()) c.verify = verify;
    if (report_command->parsed()) c.report = report;
    if (data_command->parsed()) c.data = data;
    if (graph_command->parsed()) c.graph = graph;
    if (watch_command->parsed()) c.watch = watch;
    if (hang_command->parsed()) c.explain_hang = explain_hang;
    c.resume = run.resume->count() > 0;
    c.validate_only = run.validate->count() > 0;
    const bool is_run = app.get_subcommands().empty();
    const bool prints_page = c.print_man || !c.print_completion.empty();
    if (prints_page) c.pages = pages_of(app);
    const bool needs_config =
        is_run && !c.print_schema && !c.print_reference && !c.version && !prints_page;
    if (needs_config && c.config.empty()) throw CLI::RequiredError("--config");
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = app.exit(error, out, err);
    parsed.exit_code = code == 0 ? kSuccess : kUsage;
    parsed.out = out.str();
    parsed.err = err.str();
  }
  return parsed;
}

}  // namespace aifs::app
