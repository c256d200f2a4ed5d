// SPDX-License-Identifier: Apache-2.0
#include "report/report_page.h"

#include <cmath>

#include "report/page_files.h"
#include "report/page_text.h"
#include "report/round_digits.h"

namespace aifs::report {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kDigits = 6;

Json number(double value, int digits = kDigits) {
  return std::isfinite(value) ? Json(rounded(value, digits)) : Json();
}

Json numbers(const std::vector<double>& values, int digits = kDigits) {
  Json list = Json::array();
  for (const double value : values)
    list.push_back(number(value, digits));
  return list;
}

// Where nothing was thinned the mean says all.
Json series_json(const Series& series) {
  constexpr int kAll = 15;  // of steps
  Json json{{"step", numbers(series.step, kAll)}, {"mean", numbers(series.mean)}};
  const Json low = numbers(series.low), high = numbers(series.high);
  if (low != json["mean"] || high != json["mean"]) {
    json["low"] = low;
    json["high"] = high;
  }
  return json;
}

// {"step", "loss", "ratios": {"24h": 0.8}} of a line of validation.jsonl; with several datasets the
// keys are "name 24h".
Json validation_json(const Json& line) {
  Json json{{"step", line.value("step", Json())},
            {"loss", line.value("loss", Json())},
            {"ratios", Json::object()}};
  if (line.contains("failure") && line["failure"].is_string()) json["failure"] = line["failure"];
  const auto add = [&](const Json& lead_times, const std::string& prefix) {
    if (!lead_times.is_object()) return;
    for (const auto& [lead, scores] : lead_times.items())
      if (scores.is_object() && scores.contains("mean_ratio") && scores["mean_ratio"].is_number())
        json["ratios"][prefix + lead] = number(scores["mean_ratio"]);
  };
  if (line.contains("lead_times")) add(line["lead_times"], "");
  if (line.contains("datasets") && line["datasets"].is_object())
    for (const auto& [name, dataset] : line["datasets"].items())
      if (dataset.is_object() && dataset.contains("lead_times"))
        add(dataset["lead_times"], name + " ");
  for (const char* key : {"step", "loss"})
    if (!json[key].is_number()) json[key] = nullptr;
  return json;
}

Json log_json(const LogSummary& log) {
  Json parts = Json::array();
  for (const PartTime& part : log.parts)
    parts.push_back({{"name", part.name}, {"total_s", part.total_s}});
  return {{"card", log.card},
          {"processes", log.num_processes},
          {"wall_s", number(log.wall_s)},
          {"parts", parts},
          {"warnings", log.warnings},
          {"errors", log.errors},
          {"num_warnings", log.num_warnings},
          {"num_errors", log.num_errors}};
}

Json goodput_json(const std::optional<GoodputFile>& goodput) {
  if (!goodput) return nullptr;
  Json parts = Json::array();
  for (const auto& [name, seconds] : goodput->seconds)
    parts.push_back({{"name", name}, {"total_s", number(seconds)}});
  return {{"share", number(goodput->share)},
          {"wall_s", number(goodput->wall_s)},
          {"starts", goodput->starts},
          {"parts", parts}};
}

// The keys of a manifest that say where the weights come from, and the configuration.
Json manifest_json(const Json& manifest) {
  Json json = Json::object();
  if (!manifest.is_object()) return json;
  for (const char* key : {"program_version", "torch_version", "time_utc", "step", "epoch",
                          "config_hash", "graph_hash", "config"})
    if (manifest.contains(key)) json[key] = manifest[key];
  return json;
}

Json run_json(const RunFolder& run) {
  const Metrics& m = run.metrics;
  Json json{{"name", run.name},
            {"path", run.path.string()},
            {"remarks", run.remarks},
            {"lines", m.num_lines},
            {"skipped", m.num_skipped},
            {"last_step", m.last_step},
            {"loss", number(m.loss)},
            {"steps_s", number(m.steps_s)},
            {"waiting_s", number(m.waiting_s)},
            {"samples", number(m.samples, 12)},
            {"series", Json::object()},
            {"validations", Json::array()},
            {"log", log_json(run.log)},
            {"goodput", goodput_json(run.goodput)},
            {"manifest", manifest_json(run.manifest)}};
  for (const auto& [name, series] : m.series)
    json["series"][name] = series_json(series);
  for (const Json& line : run.validations)
    json["validations"].push_back(validation_json(line));
  return json;
}

Json scores_json(const ScoreTable& table) {
  Json json{{"name", table.name},           {"variables", table.variables},
            {"regions", table.regions},     {"lead_times_h", table.lead_times_h},
            {"damaged", table.num_damaged}, {"figures", Json::object()}};
  for (const auto& [name, values] : table.figures)
    json["figures"][name] = numbers(values, 5);
  return json;
}

}  // namespace

nlohmann::ordered_json report_json(const ReportInput& input) {
  Json json{{"title", input.title},  {"made_by", input.made_by}, {"made_at", input.made_at},
            {"runs", Json::array()}, {"scores", Json::array()},  {"maps", input.maps}};
  for (const RunFolder& run : input.runs)
    json["runs"].push_back(run_json(run));
  for (const ScoreTable& table : input.scores)
    json["scores"].push_back(scores_json(table));
  return json;
}

std::string report_page(const ReportInput& input) {
  const std::string report =
      harmless(report_json(input).dump(-1, ' ', false, Json::error_handler_t::replace));
  return filled(kReportHtml, {{"@STYLE@", kReportCss},
                              {"@REPORT@", report},
                              {"@COASTLINES@", kCoastlines},
                              {"@SPHERE_SCRIPT@", kSphereScript},
                              {"@FIGURE_SCRIPT@", kFigureScript},
                              {"@CURVES_SCRIPT@", kCurvesScript},
                              {"@SCORECARD_SCRIPT@", kScorecardScript},
                              {"@MAPS_SCRIPT@", kMapsScript},
                              {"@REPORT_SCRIPT@", kReportScript}});
}

}  // namespace aifs::report
