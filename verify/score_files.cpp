// SPDX-License-Identifier: Apache-2.0
#include "verify/score_files.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/time.h"

namespace aifs::verify {

namespace {

using Json = nlohmann::ordered_json;

// Skill from the pairs of each part; none where there is no pair.
std::vector<Skill> skill_of(const std::vector<std::vector<ErrorPair>>& pairs) {
  std::vector<Skill> skill;
  for (const std::vector<ErrorPair>& part : pairs)
    skill.push_back(part.empty() ? Skill{NAN, NAN, NAN} : bootstrap_skill(part));
  return skill;
}

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

void put_skill(const std::string& name, const Skill& skill, Json& row) {
  row[name] = number(skill.value);
  row[name + "_low"] = number(skill.low);
  row[name + "_high"] = number(skill.high);
}

std::vector<Json> rows_of(const Verification& v) {
  std::vector<Json> rows;
  const ScoredParts& parts = v.parts;
  for (size_t variable = 0; variable < parts.variables.size(); ++variable) {
    for (size_t lead = 0; lead < parts.lead_times_s.size(); ++lead) {
      for (size_t region = 0; region < parts.regions.size(); ++region) {
        const size_t place = parts.place(variable, lead, region);
        const auto& [mean, num_forecasts] = v.scores[place];
        if (num_forecasts == 0) continue;
        Json row{{"variable", parts.variables[variable]},
                 {"lead_time_h", static_cast<double>(parts.lead_times_s[lead]) / 3600.0},
                 {"region", parts.regions[region].name},
                 {"forecasts", num_forecasts},
                 {"rmse", std::sqrt(mean.squared_error)},
                 {"bias", mean.error},
                 {"mae", mean.absolute_error},
                 {"persistence_rmse", std::sqrt(mean.persistence_squared_error)}};
        put_skill("skill", v.against_persistence[place], row);
        row["activity"] = std::sqrt(mean.activity);
        row["truth_activity"] = std::sqrt(mean.truth_activity);
        if (v.num_members > 1) {
          row["spread"] = std::sqrt(mean.spread);
          row["crps"] = mean.crps;
        }
        if (!v.against_other.empty()) put_skill("skill_against", v.against_other[place], row);
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

std::vector<Skill> skill_against_persistence(const std::vector<ForecastScores>& forecasts,
                                             size_t num_parts) {
  std::vector<std::vector<ErrorPair>> pairs(num_parts);
  for (const ForecastScores& forecast : forecasts)
    for (size_t i = 0; i < num_parts; ++i)
      if (const auto& scores = forecast.scores[i])
        pairs[i].push_back({scores->squared_error, scores->persistence_squared_error});
  return skill_of(pairs);
}

std::vector<Skill> skill_against(const std::vector<ForecastScores>& forecasts,
                                 const std::vector<ForecastScores>& others, size_t num_parts) {
  std::map<int64_t, const ForecastScores*> by_start;
  for (const ForecastScores& other : others)
    by_start[other.start_s] = &other;
  std::vector<std::vector<ErrorPair>> pairs(num_parts);
  int64_t num_common = 0;
  for (const ForecastScores& forecast : forecasts) {
    const auto other = by_start.find(forecast.start_s);
    if (other == by_start.end()) continue;
    ++num_common;
    for (size_t i = 0; i < num_parts; ++i) {
      const auto &own = forecast.scores[i], &theirs = other->second->scores[i];
      if (own && theirs) pairs[i].push_back({own->squared_error, theirs->squared_error});
    }
  }
  if (num_common == 0)
    throw DataError("the two sets of forecasts have no start date in common",
                    "make forecasts of the same dates with both");
  return skill_of(pairs);
}

std::string to_json_lines(const Verification& verification) {
  std::string text;
  for (const Json& row : rows_of(verification))
    text += row.dump() + "\n";
  return text;
}

std::string to_csv(const Verification& verification) {
  std::string text;
  for (const Json& row : rows_of(verification)) {
    std::string head, line;
    for (const auto& [key, value] : row.items()) {
      const char* comma = line.empty() ? "" : ",";
      head += comma + key;
      line += comma + (value.is_string() ? value.get<std::string>()
                       : value.is_null() ? std::string()
                                         : value.dump());
    }
    if (text.empty()) text = head + "\n";
    text += line + "\n";
  }
  return text;
}

std::string to_table(const Verification& v, size_t region) {
  const ScoredParts& parts = v.parts;
  constexpr size_t kMostColumns = 4;
  const size_t num_leads = parts.lead_times_s.size();
  std::vector<size_t> leads;  // evenly spread, the last one included
  const size_t count = std::min(num_leads, kMostColumns);
  for (size_t i = 1; i <= count; ++i)
    leads.push_back(i * num_leads / count - 1);
  size_t width = 8;
  for (const std::string& name : parts.variables)
    width = std::max(width, name.size());
  const auto padded = [](std::string text, size_t wide) {
    text.resize(std::max(wide, text.size()), ' ');
    return text;
  };
  int64_t most = 0;
  for (const MeanScores& scores : v.scores)
    most = std::max(most, scores.num_forecasts);
  std::string text = concat(parts.regions[region].name, ", ", most, " forecasts\n");
  text += std::string(width, ' ');
  for (const size_t lead : leads) {
    text += " | " + padded("RMSE " + format_lead_time(parts.lead_times_s[lead]), 11) + "  skill";
    if (!v.against_other.empty()) text += "  against";
  }
  text += "\n";
  for (size_t variable = 0; variable < parts.variables.size(); ++variable) {
    text += padded(parts.variables[variable], width);
    for (const size_t lead : leads) {
      const size_t place = parts.place(variable, lead, region);
      const MeanScores& scores = v.scores[place];
      if (scores.num_forecasts == 0) {
        text += " |          --      --";
        if (!v.against_other.empty()) text += "       --";
        continue;
      }
      text += formatted(" | %11.4g", std::sqrt(scores.mean.squared_error)) +
              formatted(" %5.1f%%", 100.0 * v.against_persistence[place].value);
      if (v.against_other.empty()) continue;
      const Skill& other = v.against_other[place];
      text += formatted("  %5.1f%%", 100.0 * other.value) + (other.is_significant() ? "*" : " ");
    }
    text += "\n";
  }
  return text;
}

}  // namespace aifs::verify
