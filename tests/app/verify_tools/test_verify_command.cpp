// SPDX-License-Identifier: Apache-2.0
// `aifs-train verify` on forecasts of a trained run.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "core/file_io.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;

namespace {

test::CommandResult call(const std::string& arguments) {
  return test::run_command(concat("'", test::program("aifs-train").string(), "' ", arguments));
}

// A run with forecasts from the two first dates that its validation has.
class Forecasts {
 public:
  Forecasts() {
    const auto trained =
        test::run_train(run(),
                        "--set train.max_steps=10 --set checkpoint.every_steps=0 --set "
                        "train.validation.every_epochs=0 --set train.validation.at_end=false");
    const auto made =
        call(concat("forecast '", run().string(), "' --dates ",
                    "2020-02-01T06,2020-02-01T12 --lead-time 12h --out '", files().string(), "'"));
    INFO(trained.err << made.err);
    REQUIRE(trained.exit_code == 0);
    REQUIRE(made.exit_code == 0);
  }
  fs::path run() const { return folder_.path() / "run"; }
  fs::path files() const { return folder_.path() / "forecasts"; }
  fs::path scores() const { return folder_.path() / "scores"; }
  test::CommandResult verify(const std::string& more) const {
    return call(concat("verify '", files().string(), "' --truth '", run().string(), "' ", more));
  }

 private:
  test::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("verification of forecasts gives the scores of the validation", "[verify_command]") {
  const Forecasts forecasts;
  const auto validated =
      test::run_train(forecasts.run(),
                      "--validate-only --set data.validation.start=2020-02-01 --set "
                      "data.validation.end=2020-02-02T00 --set train.validation.max_dates=0");
  INFO(validated.err);
  REQUIRE(validated.exit_code == 0);
  const auto wanted = nlohmann::json::parse(read_file(forecasts.run() / "validation-step-10.json"));
  const auto verified =
      forecasts.verify(concat("--regions global,nh --out '", forecasts.scores().string(), "'"));
  INFO(verified.err);
  REQUIRE(verified.exit_code == 0);
  REQUIRE_THAT(verified.out, ContainsSubstring("global") && ContainsSubstring("RMSE 12h"));
  std::istringstream lines(read_file(forecasts.scores() / "scores.jsonl"));
  int compared = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    if (row["region"] != "global" || row["lead_time_h"] != 12.0) continue;
    const auto& lead = wanted["lead_times"]["12h"];
    const std::string variable = row["variable"];
    INFO(variable);
    REQUIRE(lead["num_dates"] == 2);
    REQUIRE(row["forecasts"] == 2);
    REQUIRE(row["rmse"].get<double>() ==
            Approx(lead["rmse"][variable].get<double>()).epsilon(1e-5));
    REQUIRE(row["persistence_rmse"].get<double>() ==
            Approx(lead["persistence_rmse"][variable].get<double>()).epsilon(1e-5));
    ++compared;
  }
  REQUIRE(compared == 13);
}

TEST_CASE("climatology, seasons, thresholds, spectra and stations are written",
          "[verify_command]") {
  const Forecasts forecasts;
  const fs::path out = forecasts.scores(), stations = forecasts.run() / "stations.csv";
  write_file_atomic(stations,
                    "station,latitude,longitude,height,time,u_500\n"
                    "A,50,8,100,2020-02-01T12,1.5\nB,-20,100,5,2020-02-01T18,2.5\n"
                    "B,-20,100,5,2020-02-03T18,2.5\n");
  const std::string options =
      concat("--regions global,tropics,europe --weights area --climatology compute ",
             "--climatology-window 3 --seasons --thresholds u_500=0,5 --spectra zonal,degree ",
             "--stations '", stations.string(), "' --out '", out.string(), "'");
  const auto verified = forecasts.verify(options);
  INFO(verified.err);
  REQUIRE(verified.exit_code == 0);
  REQUIRE_THAT(verified.out, ContainsSubstring("global, DJF, 2 forecasts") &&
                                 ContainsSubstring("acc") && ContainsSubstring("u_500 >= 5") &&
                                 ContainsSubstring("global, stations"));
  REQUIRE_THAT(verified.out, !ContainsSubstring("JJA"));
  REQUIRE_THAT(verified.err, ContainsSubstring("not corrected for the heights"));
  const auto lines_of = [&](const char* name) {
    std::istringstream text(read_file(out / name));
    std::vector<nlohmann::json> rows;
    for (std::string line; std::getline(text, line);)
      rows.push_back(nlohmann::json::parse(line));
    return rows;
  };
  const auto rows = lines_of("scores.jsonl");
  REQUIRE(rows.size() == 13 * 2 * 3 * 2);  // variables, lead times, regions, all and DJF
  for (const auto& row : rows) {
    REQUIRE(row["coverage"] == 1.0);
    REQUIRE(std::abs(row["acc"].get<double>()) <= 1.0);
    REQUIRE(row.contains("thresholds") == (row["variable"] == "u_500"));
  }
  const auto spectra = lines_of("spectra.jsonl");
  REQUIRE(spectra.size() == 13 * 2 * 3);  // zonal of two regions, degree
  // The area weights of a Gaussian grid are those of the degrees: powers of the error add up.
  for (const auto& spectrum : spectra) {
    if (spectrum["kind"] != "degree" || spectrum["variable"] != "u_500") continue;
    double power = 0.0;
    for (const double one : spectrum["error"])
      power += one;
    for (const auto& row : rows)
      if (row["variable"] == "u_500" && row["region"] == "global" && row["season"] == "all" &&
          row["lead_time_h"] == spectrum["lead_time_h"])
        REQUIRE(power <= std::pow(row["rmse"].get<double>(), 2) * 1.001);
  }
  const auto at_stations = lines_of("stations.jsonl");
  REQUIRE(at_stations.size() == 5);  // 6 and 12 h globally and in the tropics, 6 h in Europe
  REQUIRE(path_exists(out / "scores.nc"));
  REQUIRE(path_exists(out / "thresholds.csv"));
  const auto again = forecasts.verify(options);
  REQUIRE(again.exit_code == 0);
  REQUIRE_THAT(again.err, ContainsSubstring("climatology of '"));  // it was kept
  REQUIRE(lines_of("scores.jsonl") == rows);
}

TEST_CASE("forecasts on a regular grid are verified against the truth on it", "[verify_command]") {
  const Forecasts forecasts;
  const auto biases = [&](const fs::path& files, const std::string& more) {
    const auto verified =
        call(concat("verify '", files.string(), "' --truth '", forecasts.run().string(),
                    "' --out '", forecasts.scores().string(), "' ", more));
    INFO(verified.err);
    REQUIRE(verified.exit_code == 0);
    std::istringstream lines(read_file(forecasts.scores() / "scores.jsonl"));
    std::vector<double> found;
    for (std::string line; std::getline(lines, line);) {
      const auto row = nlohmann::json::parse(line);
      found.push_back(row["bias"].get<double>());
      REQUIRE(row["rmse"].get<double>() > std::abs(found.back()));
    }
    return found;
  };
  const auto make = [&](const char* name, const char* options) {
    const fs::path files = forecasts.run() / name;
    const auto made =
        call(concat("forecast '", forecasts.run().string(), "' --dates 2020-02-01T06,2020-02-01T12",
                    " --lead-time 12h --grid 10/10 ", options, " --out '", files.string(), "'"));
    INFO(made.err);
    REQUIRE(made.exit_code == 0);
    return files;
  };
  const std::vector<double> wanted = biases(forecasts.files(), "--weights area");
  const fs::path global = make("global", "");
  const std::vector<double> found = biases(global, "--weights area");  // conservative means keep it
  REQUIRE(wanted.size() == 26);
  REQUIRE(found.size() == wanted.size());
  double largest = 0.0;
  for (const double bias : wanted)
    largest = std::max(largest, std::abs(bias));
  for (size_t i = 0; i < found.size(); ++i)
    REQUIRE(std::abs(found[i] - wanted[i]) < 1e-5 * largest);
  REQUIRE(biases(global, "--weights area --interpolation nearest") != found);
  REQUIRE(biases(make("area", "--area 70/-20/30/40"), "").size() == 26);
  REQUIRE(biases(make("near", "--interpolation nearest"), "--interpolation nearest").size() == 26);
}

TEST_CASE("scores inside and outside of a limited area add up to those of all cells",
          "[verify_command]") {
  const test::TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string(),
                    files = (folder.path() / "forecasts").string(),
                    scores = (folder.path() / "scores").string();
  std::string options;
  for (const char* assignment :
       {"run.device=cpu", "run.threads=1", "model.channels=8", "model.layers=1",
        "data.analytic.region.spacing=5", "data.analytic.grid=o8", "data.training.end=2020-01-05",
        "data.validation.end=2020-07-03", "train.max_steps=2", "checkpoint.every_steps=0",
        "train.validation.every_epochs=0", "train.validation.at_end=false",
        "graph.nodes.hidden.global_refinement=1", "graph.nodes.hidden.local_refinement=3"})
    options += concat(" --set '", assignment, "'");
  const auto trained = test::run_train(
      run, options, (test::source_folder() / "configs/stretched_demo.json").string());
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const auto made =
      call(concat("forecast '", run, "' --dates 2020-07-01T12 --lead-time 6h --out '", files, "'"));
  const auto verified = call(concat("verify '", files, "' --truth '", run, "' --out '", scores,
                                    "' --regions global,inside,outside --variables u_500"));
  INFO(made.err << verified.err);
  REQUIRE(verified.exit_code == 0);
  std::istringstream lines(read_file(fs::path(scores) / "scores.jsonl"));
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(lines, line);)
    rows.push_back(nlohmann::json::parse(line));
  REQUIRE(rows.size() == 3);
  const auto figure = [&](size_t row, const char* name) { return rows[row][name].get<double>(); };
  const double share =
      (figure(0, "bias") - figure(2, "bias")) / (figure(1, "bias") - figure(2, "bias"));
  REQUIRE(share > 0.0);
  REQUIRE(share < 1.0);
  REQUIRE(figure(0, "mae") ==
          Approx(share * figure(1, "mae") + (1.0 - share) * figure(2, "mae")).epsilon(1e-6));
}

TEST_CASE("forecasts in Zarr folders have the scores of netCDF files", "[verify_command]") {
  const Forecasts forecasts;
  const fs::path zarr = forecasts.run() / "zarr";
  const auto made = call(concat("forecast '", forecasts.run().string(),
                                "' --dates 2020-02-01T06,2020-02-01T12 --lead-time 12h ",
                                "--format zarr --out '", zarr.string(), "'"));
  INFO(made.err);
  REQUIRE(made.exit_code == 0);
  const auto scores_of = [&](const fs::path& files) {
    const fs::path out = forecasts.scores() / files.filename();
    const auto result =
        call(concat("verify '", files.string(), "' --truth '", forecasts.run().string(),
                    "' --threads 2 --out '", out.string(), "'"));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return read_file(out / "scores.jsonl");
  };
  REQUIRE(scores_of(zarr) == scores_of(forecasts.files()));
}

TEST_CASE("what cannot be verified is refused by name", "[verify_command]") {
  const Forecasts forecasts;
  struct Fault {
    const char* options;
    int exit_code;
    const char* words;
  };
  for (const Fault& fault :
       std::vector<Fault>{{"--regions moon", 2, "'--regions'"},
                          {"--regions nowhere=1/1/0.5/1.2,global", 2, "no cell"},
                          {"--variables u_851", 2, "'u_850'"},
                          {"--lead-times 7h", 2, "'--lead-times'"},
                          {"--set data.analytic.end=2020-01-31", 3, "no forecast"},
                          {"--set data.analytic.seed=2 --set graph.grid=o9", 3, "its cell 0"},
                          {"--against nothing", 3, "'nothing' does not exist"},
                          {"--regions inside", 2, "no limited area"},
                          {"--regions a=9/0/1/5,a=8/0/1/5", 2, "two are called 'a'"},
                          {"--thresholds u_501=1", 2, "'u_500'"},
                          {"--climatology nothing.nc", 3, "nothing.nc"},
                          {"--climatology compute --climatology-window 4", 2, "no middle"},
                          {"--climatology compute --climatology-period 2020", 2, "no period"},
                          {"--climatology compute --climatology-period 1990/1991", 3, "no date"},
                          {"--spectra degree", 2, "--out"},
                          {"--spectra wave --out s", 2, "'wave'"},
                          {"--stations nothing.csv", 3, "'nothing.csv' does not exist"}}) {
    INFO(fault.options);
    const auto result = forecasts.verify(fault.options);
    INFO(result.err);
    REQUIRE(result.exit_code == fault.exit_code);
    REQUIRE_THAT(result.err, ContainsSubstring(fault.words));
  }
  const auto partly = forecasts.verify("--set data.analytic.end=2020-02-01T18");
  REQUIRE(partly.exit_code == 0);
  REQUIRE_THAT(partly.err, ContainsSubstring("1 of 4 dates"));
}
