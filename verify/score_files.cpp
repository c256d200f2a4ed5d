// SPDX-License-Identifier: Apache-2.0
#include "verify/score_files.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/time.h"
#include "verify/table_text.h"

namespace aifs::verify {

namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

void put_skill(const std::string& name, const Skill& skill, Json& row) {
  row[name] = number(skill.value);
  row[name + "_low"] = number(skill.low);
  row[name + "_high"] = number(skill.high);
}

// Where a row stands among the parts.
struct Place {
  size_t variable, lead_time, region, season;
};

Json events_of(const std::vector<double>& thresholds, const std::vector<EventScores>& events,
               bool is_ensemble) {
  Json list = Json::array();
  for (size_t k = 0; k < thresholds.size(); ++k) {
    const EventScores& event = events[k];
    Json one{{"threshold", thresholds[k]},
             {"base_rate", number(event.base_rate())},
             {"frequency_bias", number(event.frequency_bias())},
             {"pod", number(event.detection())},
             {"far", number(event.false_alarm_ratio())},
             {"ets", number(event.equitable_threat())},
             {"hits", event.hits},
             {"false_alarms", event.false_alarms},
             {"misses", event.misses},
             {"correct_negatives", event.correct_negatives}};
    if (is_ensemble) one["brier"] = event.brier;
    list.push_back(std::move(one));
  }
  return list;
}

// The standard deviation that members have, less few of them, for a unit of the error of their
// mean; 1 where the truth is like a member (Fortin et al. 2014, J. Hydrometeorology 15, 1708).
double spread_skill(const FieldScores& mean, int64_t num_members) {
  const auto members = static_cast<double>(num_members);
  return std::sqrt((members + 1.0) / members * mean.spread / mean.squared_error);
}

Json row_at(const Verification& v, const Place& at) {
  const ScoredParts& parts = v.parts;
  const SeasonScores& season = v.seasons[at.season];
  const size_t place = parts.place(at.variable, at.lead_time, at.region);
  const auto& [mean, num_forecasts] = season.scores[place];
  Json row{{"variable", parts.variables[at.variable]},
           {"lead_time_h", static_cast<double>(parts.lead_times_s[at.lead_time]) / 3600.0},
           {"region", parts.regions[at.region].name}};
  if (v.seasons.size() > 1) row["season"] = season.name;
  row["forecasts"] = num_forecasts;
  row["rmse"] = std::sqrt(mean.squared_error);
  row["bias"] = mean.error;
  row["mae"] = mean.absolute_error;
  row["persistence_rmse"] = std::sqrt(mean.persistence_squared_error);
  put_skill("skill", season.against_persistence[place], row);
  row["activity"] = std::sqrt(mean.activity);
  row["truth_activity"] = std::sqrt(mean.truth_activity);
  const bool is_ensemble = v.num_members > 1;
  if (is_ensemble) {
    row["spread"] = std::sqrt(mean.spread);
    row["crps"] = mean.crps;
    row["spread_skill"] = number(spread_skill(mean, v.num_members));
  }
  if (!season.against_other.empty()) put_skill("skill_against", season.against_other[place], row);
  if (!season.against_climatology.empty()) {
    row["climatology_rmse"] = std::sqrt(mean.climatology_squared_error);
    row["acc"] = number(mean.anomaly_correlation);
    put_skill("skill_against_climatology", season.against_climatology[place], row);
  }
  row["coverage"] = mean.coverage;
  if (is_ensemble) row["rank_histogram"] = mean.ranks;
  if (!mean.events.empty())
    row["thresholds"] = events_of(parts.thresholds[at.variable], mean.events, is_ensemble);
  return row;
}

// Adds a line of cells to a table, with its head if it is the first.
void add_csv_line(const Json& row, std::string& text) {
  std::string head, line;
  for (const auto& [key, value] : row.items()) {
    if (value.is_array()) continue;
    const char* comma = head.empty() ? "" : ",";
    head += comma + key;
    line += comma + (value.is_string() ? value.get<std::string>()
                     : value.is_null() ? std::string()
                                       : value.dump());
  }
  if (text.empty()) text = head + "\n";
  text += line + "\n";
}

std::string title_of(const Verification& v, size_t region, const SeasonScores& season) {
  int64_t most = 0;
  for (const MeanScores& scores : season.scores)
    most = std::max(most, scores.num_forecasts);
  return concat(v.parts.regions[region].name, v.seasons.size() > 1 ? ", " + season.name : "", ", ",
                most, " forecasts\n");
}

// The cells of a variable at a lead time.
std::string table_cells(const SeasonScores& season, size_t place) {
  const MeanScores& scores = season.scores[place];
  if (scores.num_forecasts == 0)
    return concat(" |          --      --", season.against_climatology.empty() ? "" : "     --",
                  season.against_other.empty() ? "" : "       --");
  std::string text = formatted(" | %11.4g", std::sqrt(scores.mean.squared_error)) +
                     formatted(" %5.1f%%", 100.0 * season.against_persistence[place].value);
  if (!season.against_climatology.empty())
    text += formatted(" %6.3f", scores.mean.anomaly_correlation);
  if (season.against_other.empty()) return text;
  const Skill& other = season.against_other[place];
  return text + formatted("  %5.1f%%", 100.0 * other.value) + (other.is_significant() ? "*" : " ");
}

}  // namespace

std::vector<Json> score_rows(const Verification& v) {
  std::vector<Json> rows;
  const ScoredParts& parts = v.parts;
  for (size_t variable = 0; variable < parts.variables.size(); ++variable)
    for (size_t lead = 0; lead < parts.lead_times_s.size(); ++lead)
      for (size_t region = 0; region < parts.regions.size(); ++region)
        for (size_t season = 0; season < v.seasons.size(); ++season)
          if (v.seasons[season].scores[parts.place(variable, lead, region)].num_forecasts > 0)
            rows.push_back(row_at(v, {variable, lead, region, season}));
  return rows;
}

std::string to_json_lines(const std::vector<Json>& rows) {
  std::string text;
  for (const Json& row : rows)
    text += row.dump() + "\n";
  return text;
}

std::string to_csv(const std::vector<Json>& rows) {
  std::string text;
  for (const Json& row : rows)
    add_csv_line(row, text);
  return text;
}

std::string thresholds_csv(const std::vector<Json>& rows) {
  std::string text;
  for (const Json& row : rows) {
    if (!row.contains("thresholds")) continue;
    for (const Json& event : row["thresholds"]) {
      Json line;
      for (const char* key : {"variable", "lead_time_h", "region", "season", "forecasts"})
        if (row.contains(key)) line[key] = row[key];
      line.update(event);
      add_csv_line(line, text);
    }
  }
  return text;
}

std::string to_table(const Verification& v, size_t region, size_t season_number) {
  const ScoredParts& parts = v.parts;
  const SeasonScores& season = v.seasons[season_number];
  const std::vector<size_t> leads = shown_lead_times(parts.lead_times_s.size());
  size_t width = 8;
  for (const std::string& name : parts.variables)
    width = std::max(width, name.size());
  std::string text = title_of(v, region, season) + std::string(width, ' ');
  for (const size_t lead : leads) {
    text += " | " + padded("RMSE " + format_lead_time(parts.lead_times_s[lead]), 11) + "  skill";
    if (!season.against_climatology.empty()) text += "    acc";
    if (!season.against_other.empty()) text += "  against";
  }
  text += "\n";
  for (size_t variable = 0; variable < parts.variables.size(); ++variable) {
    text += padded(parts.variables[variable], width);
    for (const size_t lead : leads)
      text += table_cells(season, parts.place(variable, lead, region));
    text += "\n";
  }
  return text;
}

std::string thresholds_table(const Verification& v, size_t region, size_t season_number) {
  const ScoredParts& parts = v.parts;
  const SeasonScores& season = v.seasons[season_number];
  const std::vector<size_t> leads = shown_lead_times(parts.lead_times_s.size());
  std::string text;
  for (size_t variable = 0; variable < parts.thresholds.size(); ++variable) {
    for (size_t k = 0; k < parts.thresholds[variable].size(); ++k) {
      text += padded(concat(parts.variables[variable], " >= ", parts.thresholds[variable][k]), 20);
      for (const size_t lead : leads) {
        const MeanScores& scores = season.scores[parts.place(variable, lead, region)];
        const EventScores event = scores.num_forecasts > 0 ? scores.mean.events[k] : EventScores{};
        text += formatted(" | %11.3f", event.equitable_threat()) +
                formatted(" %6.2f", event.frequency_bias());
      }
      text += "\n";
    }
  }
  if (text.empty()) return text;
  std::string head = title_of(v, region, season) + std::string(20, ' ');
  for (const size_t lead : leads)
    head += " | " + padded("ETS " + format_lead_time(parts.lead_times_s[lead]), 11) + "   bias";
  return head + "\n" + text;
}

}  // namespace aifs::verify
