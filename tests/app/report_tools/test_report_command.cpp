// SPDX-License-Identifier: Apache-2.0
// `aifs-train report` about a trained run, its forecasts and scores.
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/file_io.h"
#include "tests/app/report_tools/reported_run.h"
#include "tests/support/catch.h"

using namespace aifs;
using Json = nlohmann::json;

namespace {

// The last line of a JSON Lines file.
Json last_line(const fs::path& file) {
  std::istringstream lines(read_file(file));
  std::string last;
  for (std::string line; std::getline(lines, line);)
    last = line;
  return Json::parse(last);
}

}  // namespace

TEST_CASE("the report has the numbers of metrics, validation, scores and forecasts",
          "[report_command]") {
  const test::ReportedRun run;
  const auto made = run.report(concat("'", run.folder().string(), "' ", run.everything()));
  INFO(made.err);
  REQUIRE(made.exit_code == 0);
  const std::string page = read_file(run.page());
  CHECK(page.size() < 1500000);
  const Json report = test::report_of_page(page);
  REQUIRE(report["runs"].size() == 1);
  const Json &own = report["runs"][0], metrics = last_line(run.folder() / "metrics.jsonl");
  CHECK(own["name"] == "run");
  CHECK(own["lines"] == 10);
  CHECK(own["last_step"] == 10);
  CHECK(own["series"]["loss"]["mean"].back().get<double>() ==
        Approx(metrics["loss"].get<double>()).epsilon(1e-5));
  const Json validation = last_line(run.folder() / "validation.jsonl");
  CHECK(own["validations"].back()["ratios"]["6h"].get<double>() ==
        Approx(validation["lead_times"]["6h"]["mean_ratio"].get<double>()).epsilon(1e-5));
  CHECK(own["manifest"]["config"]["run"]["seed"] == 7);
  CHECK_THAT(own["log"]["card"].get<std::string>(), ContainsSubstring("seed 7"));
  CHECK(own["log"]["parts"].size() == 7);
  CHECK(own["log"]["wall_s"].get<double>() > 0.0);

  const Json& maps = report["maps"];
  CHECK(maps["num_points"] == 544);
  CHECK(maps["lead_times_h"] == Json{6.0, 12.0});
  // One forecast: the errors of the maps are those of the scores.
  std::istringstream lines(read_file(run.scores() / "scores.jsonl"));
  int compared = 0;
  for (std::string line; std::getline(lines, line);) {
    const Json row = Json::parse(line);
    for (const Json& variable : maps["variables"]) {
      if (row["variable"] != variable["name"] || row["lead_time_h"] != 12.0) continue;
      const Json& forecast = variable["forecasts"][0];
      CHECK(forecast["rmse"][1].get<double>() == Approx(row["rmse"].get<double>()).epsilon(1e-4));
      ++compared;
    }
  }
  CHECK(compared == 8);
}

TEST_CASE("two runs stand side by side, and maps fit into the page that was asked for",
          "[report_command]") {
  const test::ReportedRun run;
  const fs::path copy = run.folder().parent_path() / "copy";
  fs::copy(run.folder(), copy, fs::copy_options::recursive);
  const auto made = run.report(concat("'", run.folder().string(), "' '", copy.string(),
                                      "' --max-mb 0.5 --title '<i>' ", run.everything()));
  INFO(made.err);
  REQUIRE(made.exit_code == 0);
  const std::string page = read_file(run.page());
  CHECK(page.size() < 500000);
  const Json report = test::report_of_page(page);
  CHECK(report["title"] == "<i>");
  CHECK(report["runs"][1]["name"] == "copy");
  CHECK(report["runs"][0]["series"]["loss"] == report["runs"][1]["series"]["loss"]);
}

TEST_CASE("what cannot be reported is refused by name", "[report_command]") {
  const test::ReportedRun run;
  const std::string own = concat("'", run.folder().string(), "' ");
  const std::string maps = concat(own, "--forecasts '", run.forecasts().string(), "' ");
  struct Fault {
    std::string arguments;
    int exit_code;
    const char* words;
  };
  for (const Fault& fault :
       std::vector<Fault>{{"nothing", 3, "'nothing' is no folder"},
                          {concat("'", run.forecasts().string(), "'"), 3, "no metrics.jsonl"},
                          {own + own, 2, "named twice"},
                          {own + "--scores nothing", 3, "'nothing' does not exist"},
                          {own + "--truth nothing", 2, "'--forecasts'"},
                          {own + "--max-mb 0", 2, "'--max-mb'"},
                          {maps + "--variables u_851", 2, "'u_850'"},
                          {maps + "--lead-times 7h", 2, "'--lead-times'"},
                          {maps + "--date 2020-01-01", 2, "'--date'"},
                          {maps + "--date soon", 2, "'--date'"},
                          {maps + "--truth nothing", 3, "nothing"}}) {
    INFO(fault.arguments);
    const auto result = run.report(fault.arguments);
    INFO(result.err);
    CHECK(result.exit_code == fault.exit_code);
    CHECK_THAT(result.err, ContainsSubstring(fault.words));
  }
}
