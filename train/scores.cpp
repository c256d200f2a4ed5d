// SPDX-License-Identifier: Apache-2.0
#include "train/scores.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/time.h"

namespace aifs::train {

namespace {

template <class Scores>
double ratio_of(const Scores& scores, const data::VariableTable& variables) {
  double sum = 0.0;
  int64_t count = 0;
  for (const int64_t v : variables.output_prognostic()) {
    if (std::count(scores.constant.begin(), scores.constant.end(), v) > 0) continue;
    sum += scores.rmse[static_cast<size_t>(v)] / scores.persistence_rmse[static_cast<size_t>(v)];
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : std::nan("");
}

}  // namespace

double mean_ratio(const LeadTimeScores& scores, const data::VariableTable& variables) {
  return ratio_of(scores, variables);
}

double mean_ratio(const RegionScores& scores, const data::VariableTable& variables) {
  return ratio_of(scores, variables);
}

namespace {

// Members named as `suffix` ends them, each an object of all outputs.
template <class Scores>
void add_figures(const Scores& scores, const data::VariableTable& variables,
                 const std::string& suffix, nlohmann::ordered_json& entry) {
  const std::vector<std::string> names = variables.output_names();
  const auto add = [&](const char* figure, const std::vector<double>& values) {
    if (values.empty()) return;
    for (size_t v = 0; v < names.size(); ++v)
      entry[figure + suffix][names[v]] = values[v];
  };
  std::vector<double> skill;
  for (size_t v = 0; v < names.size(); ++v)
    skill.push_back(scores.persistence_rmse[v] > 0.0
                        ? 1.0 - scores.rmse[v] / scores.persistence_rmse[v]
                        : std::nan(""));
  add("rmse", scores.rmse);
  add("persistence_rmse", scores.persistence_rmse);
  add("skill", skill);
  add("bias", scores.bias);
  add("mae", scores.mae);
  add("activity", scores.activity);
  add("truth_activity", scores.truth_activity);
}

void add_region(const RegionScores& region, const data::VariableTable& variables,
                nlohmann::ordered_json& entry) {
  const std::string suffix = "_" + region.name;
  entry["weight" + suffix] = region.share;
  entry["mean_ratio" + suffix] = mean_ratio(region, variables);
  add_figures(region, variables, suffix, entry);
}

nlohmann::ordered_json to_json(const std::vector<LeadTimeScores>& lead_times,
                               const data::VariableTable& variables) {
  const std::vector<std::string> names = variables.output_names();
  auto leads = nlohmann::ordered_json::object();
  for (const LeadTimeScores& scores : lead_times) {
    auto& entry = leads[format_lead_time(scores.lead_time_s)];
    entry["num_dates"] = scores.num_dates;
    entry["mean_ratio"] = mean_ratio(scores, variables);
    for (const int64_t v : scores.constant)
      entry["constant"].push_back(names[static_cast<size_t>(v)]);
    add_figures(scores, variables, "", entry);
    for (const RegionScores& region : scores.regions)
      add_region(region, variables, entry);
  }
  return leads;
}

// A table of some scores of each lead time; `pick` gives those of one.
template <class Pick>
std::string table_of(const std::vector<LeadTimeScores>& lead_times,
                     const data::VariableTable& variables, const Pick& pick) {
  const std::vector<std::string> names = variables.output_names();
  char cell[96];
  std::snprintf(cell, sizeof cell, "%-14s", "variable");
  std::string out = cell;
  for (const LeadTimeScores& scores : lead_times) {
    const std::string lead = format_lead_time(scores.lead_time_s);
    std::snprintf(cell, sizeof cell, " | RMSE %-6s persist.   skill", lead.c_str());
    out += cell;
  }
  for (size_t v = 0; v < names.size(); ++v) {
    std::snprintf(cell, sizeof cell, "\n%-14s", names[v].c_str());
    out += cell;
    for (const LeadTimeScores& scores : lead_times) {
      const double rmse = pick(scores).rmse[v], persistence = pick(scores).persistence_rmse[v];
      std::snprintf(cell, sizeof cell, " | %11.4g %8.3g ", rmse, persistence);
      out += cell;
      std::snprintf(cell, sizeof cell, "%6.1f%%", 100.0 * (1.0 - rmse / persistence));
      out += persistence > 0.0 ? cell : "      -";
    }
  }
  out += "\nmean ratio    ";
  for (const LeadTimeScores& scores : lead_times) {
    std::snprintf(cell, sizeof cell, " | %11.3f of persistence  ",
                  mean_ratio(pick(scores), variables));
    out += cell;
  }
  return out;
}

std::string to_table(const std::vector<LeadTimeScores>& lead_times,
                     const data::VariableTable& variables) {
  std::string out = table_of(lead_times, variables,
                             [](const LeadTimeScores& s) -> const LeadTimeScores& { return s; });
  const size_t num_regions = lead_times.empty() ? 0 : lead_times.front().regions.size();
  for (size_t r = 0; r < num_regions; ++r) {
    const RegionScores& region = lead_times.front().regions[r];
    char title[64];
    std::snprintf(title, sizeof title, "\n\n%s, %.4g%% of the weight\n", region.name.c_str(),
                  100.0 * region.share);
    out += title;
    out += table_of(lead_times, variables,
                    [r](const LeadTimeScores& s) -> const RegionScores& { return s.regions[r]; });
  }
  return out;
}

}  // namespace

std::vector<DatasetScores> all_scores(const ValidationResult& result,
                                      const data::VariableTable& variables) {
  std::vector<DatasetScores> all{{result.name, &variables, result.lead_times}};
  all.insert(all.end(), result.further.begin(), result.further.end());
  return all;
}

nlohmann::ordered_json to_json(const ValidationResult& result,
                               const data::VariableTable& variables) {
  nlohmann::ordered_json json{
      {"loss", result.loss}, {"rollout", result.rollout}, {"num_dates", result.num_dates}};
  if (result.loss_dates != result.num_dates) json["loss_dates"] = result.loss_dates;
  if (result.further.empty()) {
    json["lead_times"] = to_json(result.lead_times, variables);
    return json;
  }
  for (const DatasetScores& d : all_scores(result, variables))
    json["datasets"][d.name]["lead_times"] = to_json(d.lead_times, *d.variables);
  return json;
}

std::string to_table(const ValidationResult& result, const data::VariableTable& variables) {
  if (result.further.empty()) return to_table(result.lead_times, variables);
  std::string out;
  for (const DatasetScores& d : all_scores(result, variables))
    out += concat(out.empty() ? "" : "\n\n", d.name, "\n", to_table(d.lead_times, *d.variables));
  return out;
}

}  // namespace aifs::train
