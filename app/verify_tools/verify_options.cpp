// SPDX-License-Identifier: Apache-2.0
#include "app/verify_tools/verify_options.h"

#include <CLI/CLI.hpp>

namespace aifs::app {

namespace {

constexpr const char* kVerifyFooter = R"(Examples
  aifs-train verify forecasts --truth runs/a
  aifs-train verify forecasts --truth runs/a --regions global,nh,tropics,europe --out scores
  aifs-train verify forecasts --truth runs/a --regions alps=48/5/44/16 --lead-times 1d,5d,10d
  aifs-train verify new --against old --truth runs/a

docs/forecast.md says what the figures are.)";

}  // namespace

CLI::App* add_verify_command(CLI::App& app, VerifyCommand& c) {
  CLI::App* command =
      app.add_subcommand("verify", "score forecasts against a dataset (docs/forecast.md)");
  command->fallthrough();  // --config and --set may follow
  command->footer(kVerifyFooter);
  command->add_option("FORECASTS", c.forecasts, "folder or file that `forecast` wrote")->required();
  command
      ->add_option("--truth", c.truth,
                   "run or checkpoint whose dataset is the truth; or --config FILE")
      ->type_name("RUN");
  command->add_option("--against", c.against, "other forecasts to compare with")
      ->type_name("FORECASTS");
  command->add_option("--out", c.out, "folder for scores.jsonl and scores.csv")->type_name("DIR");
  command->add_option("--variables", c.variables, "score these only")->delimiter(',');
  command->add_option("--lead-times", c.lead_times, "score these only")->delimiter(',');
  command
      ->add_option("--regions", c.regions,
                   "global, nh, sh, tropics, europe, or name=north/west/south/east")
      ->delimiter(',')
      ->capture_default_str();
  return command;
}

}  // namespace aifs::app
