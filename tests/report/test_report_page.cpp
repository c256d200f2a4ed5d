// SPDX-License-Identifier: Apache-2.0
#include "report/report_page.h"

#include <limits>

#include "report/page_files.h"
#include "tests/support/catch.h"

using namespace aifs::report;
using Json = nlohmann::json;

namespace {

ReportInput input_of(const std::string& name) {
  RunFolder run;
  run.name = name;
  run.path = "runs/" + name;
  run.metrics.num_lines = 2;
  run.metrics.series["loss"] = {{1, 2}, {3, 4}, {3, 4}, {3, 4}};
  run.metrics.series["lr"] = {{1, 2}, {1, 2}, {1.5, 2.5}, {2, 3}};
  run.log.card = name;
  run.manifest = Json{{"config", {{name, name}}}, {"files", {{"a", "b"}}}};
  run.validations.push_back(nlohmann::ordered_json::parse(
      R"({"step":2,"loss":0.5,
          "lead_times":{"6h":{"mean_ratio":0.75},"12h":{"mean_ratio":null}}})"));
  run.validations.push_back(
      nlohmann::ordered_json::parse(R"({"step":"x","loss":[],"lead_times":7,"failure":"no"})"));
  ReportInput input;
  input.title = name;
  input.runs.push_back(std::move(run));
  return input;
}

// What the page's script reads.
Json json_in(const std::string& page) {
  const std::string begin = "<script id=\"report\" type=\"application/json\">";
  const size_t first = page.find(begin) + begin.size();
  return Json::parse(page.substr(first, page.find("</script>", first) - first));
}

}  // namespace

TEST_CASE("the page holds what runs and scores say, and no more", "[report_page]") {
  ReportInput input = input_of("a");
  ScoreTable table;
  table.name = "s";
  table.variables = {"z"};
  table.regions = {"global"};
  table.lead_times_h = {6, 12};
  table.figures["rmse"] = {1.23456789, std::numeric_limits<double>::quiet_NaN()};
  input.scores.push_back(table);
  const Json json = json_in(report_page(input));
  const Json& run = json["runs"][0];
  CHECK(run["series"]["loss"] == Json::parse(R"({"step":[1,2],"mean":[3,4]})"));
  CHECK(run["series"]["lr"]["high"] == Json{2, 3});
  CHECK(run["validations"][0] == Json::parse(R"({"step":2,"loss":0.5,"ratios":{"6h":0.75}})"));
  CHECK(run["validations"][1]["failure"] == "no");
  CHECK(run["validations"][1]["step"].is_null());
  CHECK_FALSE(run["manifest"].contains("files"));
  CHECK(json["scores"][0]["figures"]["rmse"] == Json{1.2346, nullptr});
  CHECK(json["maps"].is_null());
}

TEST_CASE("names and configurations of run folders cannot become part of the page",
          "[report_page]") {
  const std::string hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>";
  const std::string page = report_page(input_of(hostile));
  CHECK(page.find("<script>alert") == std::string::npos);
  CHECK(page.find("<img") == std::string::npos);
  const Json json = json_in(page);
  CHECK(json["title"] == hostile);
  CHECK(json["runs"][0]["manifest"]["config"][hostile] == hostile);
  // What is no UTF-8 is replaced.
  CHECK(json_in(report_page(input_of("\xff\xfe")))["title"] != "");
}

TEST_CASE("the page asks nothing of the network", "[report_page]") {
  const std::string page = report_page(input_of("a"));
  for (const char* word : {"http://", "https://", "@import", "url("})
    CHECK(page.find(word) == std::string::npos);
  CHECK(std::string(kReportScript).find("innerHTML") == std::string::npos);
}
