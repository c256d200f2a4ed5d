// SPDX-License-Identifier: Apache-2.0
#include "train/scores/named_scores.h"

#include <array>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/time.h"

namespace aifs::train {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kFigures{"rmse", "persistence_rmse", "skill",         "bias",
                              "mae",  "activity",         "truth_activity"};

double value_of(const Json& json) {
  return json.is_number() ? json.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

bool is_value(const Json& json) {
  return json.is_number() || json.is_null();
}

// Calls `each` with dataset ("": the only one), lead time and its object.
void for_lead_times(
    const Json& validation,
    const std::function<void(const std::string&, const std::string&, const Json&)>& each) {
  const auto go_through = [&](const std::string& dataset, const Json& parent) {
    const auto leads = parent.find("lead_times");
    if (leads == parent.end() || !leads->is_object()) return;
    for (const auto& [lead, entry] : leads->items())
      if (entry.is_object()) each(dataset, lead, entry);
  };
  go_through("", validation);
  const auto datasets = validation.find("datasets");
  if (datasets == validation.end() || !datasets->is_object()) return;
  for (const auto& [name, dataset] : datasets->items())
    if (dataset.is_object()) go_through(name, dataset);
}

// The region in the name of a figure: "nh" of "rmse_nh", "" of "rmse"; nothing of another name.
bool ends_in_region(const std::string& key, const std::string& figure, std::string& region) {
  if (!key.starts_with(figure)) return false;
  const std::string rest = key.substr(figure.size());
  if (!rest.empty() && rest.front() != '_') return false;
  region = rest.empty() ? "" : rest.substr(1);
  return true;
}

double hours(const std::string& lead) {
  try {
    return static_cast<double>(parse_duration(lead)) / 3600.0;
  } catch (const std::exception&) {
    return std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace

std::vector<NamedScore> named_scores(const Json& validation) {
  std::vector<NamedScore> scores;
  if (!validation.is_object()) return scores;
  if (const auto loss = validation.find("loss"); loss != validation.end() && is_value(*loss))
    scores.push_back({"loss", value_of(*loss)});
  for_lead_times(
      validation, [&](const std::string& dataset, const std::string& lead, const Json& entry) {
        const std::string place = dataset.empty() ? "" : dataset + "/";
        for (const auto& [key, value] : entry.items()) {
          if (key.starts_with("mean_ratio") && is_value(value))
            scores.push_back({place + key + "_" + lead, value_of(value)});
          if (!value.is_object()) continue;
          for (const auto& [variable, figure] : value.items())
            if (is_value(figure))
              scores.push_back({place + key + "_" + variable + "_" + lead, value_of(figure)});
        }
      });
  return scores;
}

double score_called(const std::string& name, const Json& validation) {
  for (const NamedScore& score : named_scores(validation))
    if (score.name == name) return score.value;
  return std::numeric_limits<double>::quiet_NaN();
}

std::vector<std::string> score_columns() {
  std::vector<std::string> columns{"step",        "epoch",  "dataset", "variable",
                                   "lead_time_h", "region", "dates"};
  columns.insert(columns.end(), kFigures.begin(), kFigures.end());
  return columns;
}

std::vector<Json> score_rows(const Json& validation) {
  std::vector<Json> rows;
  for_lead_times(
      validation, [&](const std::string& dataset, const std::string& lead, const Json& entry) {
        for (const auto& [key, rmse] : entry.items()) {
          std::string region;
          if (!rmse.is_object() || !ends_in_region(key, "rmse", region)) continue;
          for (const auto& [variable, ignored] : rmse.items()) {
            Json row{{"step", validation.value("step", Json())},
                     {"epoch", validation.value("epoch", Json())},
                     {"dataset", dataset},
                     {"variable", variable},
                     {"lead_time_h", hours(lead)},
                     {"region", region.empty() ? "global" : region},
                     {"dates", entry.value("num_dates", Json())}};
            for (const char* figure : kFigures) {
              const auto values = entry.find(region.empty() ? figure : concat(figure, "_", region));
              if (values != entry.end() && values->is_object())
                row[figure] = values->value(variable, Json());
            }
            rows.push_back(std::move(row));
          }
        }
      });
  return rows;
}

}  // namespace aifs::train
