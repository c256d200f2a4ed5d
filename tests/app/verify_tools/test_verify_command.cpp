// SPDX-License-Identifier: Apache-2.0
// `aifs-train verify` on forecasts of a trained run.
#include <nlohmann/json.hpp>
#include <sstream>

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
                          {"--against nothing", 3, "'nothing' does not exist"}}) {
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
