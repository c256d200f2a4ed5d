// SPDX-License-Identifier: Apache-2.0
// Runs that are judged by the scores of their validations, as users have them; and those scores
// against what `aifs-train verify` finds of forecast files.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/file_io.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using Json = nlohmann::ordered_json;

namespace {

const std::string kEveryFive =
    "--set train.validation.every_steps=5 --set train.validation.every_epochs=0 "
    "--set train.max_steps=30 ";

test::CommandResult run_program(const std::string& arguments) {
  return test::run_command(concat("'", test::program("aifs-train").string(), "' ", arguments));
}

std::vector<Json> lines_of(const fs::path& file) {
  std::istringstream text(read_file(file));
  std::vector<Json> lines;
  for (std::string line; std::getline(text, line);)
    lines.push_back(Json::parse(line));
  return lines;
}

std::string refused(const fs::path& run_dir, const std::string& more) {
  const auto result = test::run_train(run_dir, more);
  INFO(result.err);
  REQUIRE(result.exit_code == 2);
  const auto checked = test::run_train(run_dir, more + " --check-config");
  REQUIRE(checked.exit_code == 2);
  return result.err;
}

}  // namespace

TEST_CASE("a run stops early with exit code 0, and its best checkpoint has a name", "[judging]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const std::string options =
      kEveryFive +
      "--set train.early_stop.score=mean_ratio_6h --set train.early_stop.patience=2 "
      "--set train.early_stop.min_delta=1e9 --set checkpoint.keep_best.number=1 "
      "--set checkpoint.keep_best.score=rmse_nh_u_500_12h "
      "--set 'train.validation.regions=[\"nh\"]' ";
  const auto trained = test::run_train(run, options);
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  REQUIRE_THAT(trained.err, ContainsSubstring("stopped early at step 15: mean_ratio_6h"));
  REQUIRE_THAT(trained.err, ContainsSubstring("1 of 2 validations without a gain"));
  const std::vector<Json> validations = lines_of(run / "validation.jsonl");
  REQUIRE(validations.size() == 3);
  int64_t best_step = 0;
  double best = HUGE_VAL;
  for (const Json& line : validations) {
    const double rmse = line["lead_times"]["12h"]["rmse_nh"]["u_500"];
    if (rmse < best) best = rmse, best_step = line["step"];
  }
  const auto again = test::run_train(run, options + "--resume");
  INFO(again.err);
  REQUIRE(again.exit_code == 0);
  REQUIRE_THAT(again.err, ContainsSubstring("stopped early at step 15"));
  for (const char* name : {"best", "checkpoints/best"}) {
    const auto scored = test::run_train(
        folder.path() / "scores", concat(options, "--validate-only '", (run / name).string(), "'"));
    INFO(scored.err);
    REQUIRE(scored.exit_code == 0);
  }
  const Json figures = Json::parse(
      read_file(folder.path() / "scores" / concat("validation-step-", best_step, ".json")));
  REQUIRE(figures["lead_times"]["12h"]["rmse_nh"]["u_500"] == best);
  const auto none =
      run_program(concat("forecast '", (folder.path() / "scores/best").string(),
                         "' --dates 2020-02-02 --out '", folder.path().string(), "'"));
  REQUIRE(none.exit_code == 3);
}

TEST_CASE("scores that there are not, and judging without validations, are refused", "[judging]") {
  const test::TemporaryFolder folder;
  const auto said = [&](const std::string& more) { return refused(folder.path() / "run", more); };
  REQUIRE_THAT(
      said("--set checkpoint.keep_best.number=2 --set checkpoint.keep_best.score=rmse_u500"),
      ContainsSubstring("'checkpoint.keep_best.score'") && ContainsSubstring("nearest: '"));
  REQUIRE_THAT(
      said("--set train.early_stop.score=mean_ratio_18h"),
      ContainsSubstring("'train.early_stop.score'") && ContainsSubstring("'mean_ratio_12h'"));
  REQUIRE_THAT(said("--set train.early_stop.score=bias_u_500_6h"),
               ContainsSubstring("'train.early_stop.better'"));
  REQUIRE_THAT(said("--set train.early_stop.score=loss --set train.early_stop.patience=0"),
               ContainsSubstring("train.early_stop.patience"));
  const std::string never = "--set train.validation.every_epochs=0 ";
  REQUIRE_THAT(said(never + "--set train.early_stop.score=loss"),
               ContainsSubstring("'train.early_stop.score'"));
  REQUIRE_THAT(said(never + "--set train.validation.at_end=false "
                            "--set checkpoint.keep_best.number=1"),
               ContainsSubstring("'checkpoint.keep_best.number'"));
  REQUIRE_THAT(said("--set 'train.validation.regions=[\"troppics\"]'"),
               ContainsSubstring("'train.validation.regions.0'") && ContainsSubstring("'tropics'"));
}

TEST_CASE("scores of validations are those of verify, of forecasts from their dates", "[judging]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run", forecasts = folder.path() / "forecasts",
                 scores = folder.path() / "scores";
  const auto trained = test::run_train(
      run,
      "--set train.max_steps=10 --set 'train.validation.lead_times=[\"12h\"]' "
      "--set train.validation.max_dates=0 --set 'train.validation.regions=[\"nh\"]'");
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const Json validation = lines_of(run / "validation.jsonl").back()["lead_times"]["12h"];
  const auto forecast = run_program(
      concat("forecast '", run.string(), "' --first 2020-02-01T06 --last 2020-02-03T06 --every 6h ",
             "--lead-time 12h --out '", forecasts.string(), "'"));
  INFO(forecast.err);
  REQUIRE(forecast.exit_code == 0);
  const auto verified =
      run_program(concat("verify '", forecasts.string(), "' --truth '", run.string(),
                         "' --lead-times 12h --regions global,nh --out '", scores.string(), "'"));
  INFO(verified.err);
  REQUIRE(verified.exit_code == 0);
  size_t compared = 0;
  for (const Json& row : lines_of(scores / "scores.jsonl")) {
    const std::string variable = row["variable"], region = row["region"];
    REQUIRE(row["forecasts"] == validation["num_dates"]);
    for (const char* figure :
         {"rmse", "persistence_rmse", "bias", "mae", "skill", "activity", "truth_activity"}) {
      // The persistence of what is only predicted starts from the truth in one, and is not defined
      // in the other.
      const bool of_persistence =
          std::string_view(figure).find("persist") == 0 || std::string_view(figure) == "skill";
      if (variable == "ke_850" && of_persistence) continue;
      const std::string key = region == "global" ? figure : concat(figure, "_", region);
      INFO(variable << " " << key);
      const double size = row["rmse"];  // a bias is small beside the values that it comes of
      REQUIRE(validation[key][variable].get<double>() ==
              Approx(row[figure].get<double>()).epsilon(1e-4).margin(1e-4 * size));
      ++compared;
    }
  }
  REQUIRE(compared > 50);
}
