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
  aifs-train verify forecasts --truth runs/a --climatology compute --seasons --out scores
  aifs-train verify forecasts --truth runs/a --thresholds tp=0.001,0.01
  aifs-train verify forecasts --truth runs/a --spectra zonal,degree --out scores
  aifs-train verify forecasts --truth runs/a --stations observations.csv --out scores

docs/scores.md says what the figures are.)";

void add_score_options(CLI::App& command, VerifyCommand& c) {
  constexpr const char* kGroup = "Scores";
  command
      .add_option("--thresholds", c.thresholds,
                  "score the event that a variable reaches a value: tp=0.001,0.01,2t=300")
      ->type_name("VARIABLE=N,...")
      ->delimiter(',')
      ->group(kGroup);
  command
      .add_option("--weights", c.weights,
                  "how cells count: cosine of latitude, or the area that they cover")
      ->check(CLI::IsMember({"cosine", "area"}))
      ->capture_default_str()
      ->group(kGroup);
  command.add_flag("--seasons", c.seasons, "also score DJF, MAM, JJA, SON of the valid date")
      ->group(kGroup);
  command
      .add_option("--climatology", c.climatology,
                  "anomaly correlation and skill against one: a file, or 'compute' it of the truth")
      ->type_name("FILE|compute")
      ->group(kGroup);
  command
      .add_option("--climatology-window", c.climatology_window_days,
                  "days around a day that its mean is over, an odd number")
      ->type_name("DAYS")
      ->check(CLI::Range(1, 365))
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--climatology-period", c.climatology_period,
                  "dates of the truth that a computed one is of, all if not said")
      ->type_name("FIRST/LAST")
      ->group(kGroup);
  command
      .add_option("--climatology-cache", c.climatology_cache,
                  "folder where computed ones are kept, that of --out if not said")
      ->type_name("DIR")
      ->group(kGroup);
  command
      .add_option("--spectra", c.spectra,
                  "power spectra by zonal wavenumber and by degree of spherical harmonics")
      ->type_name("zonal,degree")
      ->delimiter(',')
      ->group(kGroup);
  command
      .add_option("--stations", c.stations,
                  "also score against observations at points: a CSV or netCDF file")
      ->type_name("FILE")
      ->group(kGroup);
  command
      .add_option("--station-method", c.station_method,
                  "from cells to stations: the nearest cell, or four by their inverse distance")
      ->check(CLI::IsMember({"nearest", "inverse-distance"}))
      ->capture_default_str()
      ->group(kGroup);
}

}  // namespace

CLI::App* add_verify_command(CLI::App& app, VerifyCommand& c) {
  CLI::App* command =
      app.add_subcommand("verify", "score forecasts against a dataset (docs/scores.md)");
  command->fallthrough();  // --config and --set may follow
  command->footer(kVerifyFooter);
  command->add_option("FORECASTS", c.forecasts, "folder or file that `forecast` wrote")->required();
  command
      ->add_option("--truth", c.truth,
                   "run or checkpoint whose dataset is the truth; or --config FILE")
      ->type_name("RUN");
  command->add_option("--against", c.against, "other forecasts to compare with")
      ->type_name("FORECASTS");
  command->add_option("--out", c.out, "folder for scores.jsonl, scores.csv, scores.nc and others")
      ->type_name("DIR");
  command->add_option("--variables", c.variables, "score these only")->delimiter(',');
  command->add_option("--lead-times", c.lead_times, "score these only")->delimiter(',');
  command
      ->add_option("--regions", c.regions,
                   "global, nh, sh, tropics, europe, inside, outside, or "
                   "name=north/west/south/east")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--interpolation", c.interpolation,
                   "of the truth to the grid of forecasts that `forecast --grid` wrote: as there")
      ->check(CLI::IsMember({"conservative", "nearest"}))
      ->capture_default_str();
  command->add_option("--threads", c.threads, "that score, as many as cores if not said")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  add_score_options(*command, c);
  return command;
}

}  // namespace aifs::app
