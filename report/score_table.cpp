// SPDX-License-Identifier: Apache-2.0
#include "report/score_table.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "core/check.h"

namespace aifs::report {

namespace {

constexpr const char* kHint = "name what `aifs-train verify --out` wrote";

// One line of the file.
struct Row {
  std::string variable, region;
  double lead_time_h = 0.0;
  std::map<std::string, double> figures;
};

// The scores of a season are those of a region of their own.
void add_season(const std::string& season, Row& row) {
  if (season != "all") row.region += ", " + season;
}

std::optional<Row> row_of_json(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto is_text = [&](const char* key) { return json.contains(key) && json[key].is_string(); };
  if (!json.is_object() || !is_text("variable") || !is_text("region") ||
      !json.contains("lead_time_h") || !json["lead_time_h"].is_number())
    return std::nullopt;
  Row row{json["variable"], json["region"], json["lead_time_h"], {}};
  if (is_text("season")) add_season(json["season"], row);
  for (const auto& [key, value] : json.items())
    if (value.is_number() && key != "lead_time_h") row.figures[key] = value;
  return row;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream rest(line.substr(0, line.find('\r')));
  for (std::string cell; std::getline(rest, cell, ',');)
    cells.push_back(cell);
  return cells;
}

std::optional<Row> row_of_csv(const std::vector<std::string>& head, const std::string& line) {
  const std::vector<std::string> cells = cells_of(line);
  Row row;
  std::string season = "all";
  bool has_lead_time = false;
  for (size_t i = 0; i < std::min(head.size(), cells.size()); ++i) {
    if (head[i] == "variable") row.variable = cells[i];
    if (head[i] == "region") row.region = cells[i];
    if (head[i] == "season") season = cells[i];
    if (head[i] == "variable" || head[i] == "region" || head[i] == "season") continue;
    char* end = nullptr;
    const double value = std::strtod(cells[i].c_str(), &end);
    if (cells[i].empty() || *end != '\0' || !std::isfinite(value)) continue;
    if (head[i] == "lead_time_h") has_lead_time = true, row.lead_time_h = value;
    if (head[i] != "lead_time_h") row.figures[head[i]] = value;
  }
  if (row.variable.empty() || row.region.empty() || !has_lead_time) return std::nullopt;
  add_season(season, row);
  return row;
}

std::vector<Row> read_rows(const fs::path& file, int64_t& num_damaged) {
  std::vector<Row> rows;
  const std::string text = read_file(file);
  std::istringstream lines(text);
  std::vector<std::string> head;
  const bool is_csv = !text.starts_with("{");
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    if (is_csv && head.empty()) {
      head = cells_of(line);
      continue;
    }
    std::optional<Row> row = is_csv ? row_of_csv(head, line) : row_of_json(line);
    row ? rows.push_back(std::move(*row)) : void(++num_damaged);
  }
  return rows;
}

template <class T>
size_t place_in(std::vector<T>& list, const T& value) {
  const auto found = std::find(list.begin(), list.end(), value);
  if (found != list.end()) return static_cast<size_t>(found - list.begin());
  list.push_back(value);
  return list.size() - 1;
}

fs::path score_file(const fs::path& given) {
  if (!path_exists(given)) throw DataError(concat("'", given.string(), "' does not exist"), kHint);
  if (!folder_exists(given)) return given;
  for (const char* name : {"scores.jsonl", "scores.csv"})
    if (path_exists(given / name)) return given / name;
  throw DataError(concat("'", given.string(), "' has no scores.jsonl and no scores.csv"), kHint);
}

}  // namespace

ScoreTable read_scores(const fs::path& given) {
  const fs::path file = score_file(given);
  ScoreTable table;
  table.name = given.string();
  const std::vector<Row> rows = read_rows(file, table.num_damaged);
  if (rows.empty()) throw DataError(concat("'", file.string(), "' has no scores"), kHint);
  for (const Row& row : rows) {
    place_in(table.variables, row.variable);
    place_in(table.regions, row.region);
    place_in(table.lead_times_h, row.lead_time_h);
  }
  std::sort(table.lead_times_h.begin(), table.lead_times_h.end());
  const size_t size = table.variables.size() * table.lead_times_h.size() * table.regions.size();
  constexpr size_t kMost = 4'000'000;
  if (size > kMost)
    throw DataError(concat("'", file.string(), "' has ", table.variables.size(), " variables, ",
                           table.lead_times_h.size(), " lead times and ", table.regions.size(),
                           " regions, too many for a page"),
                    "verify fewer: --variables, --lead-times, --regions");
  for (const Row& row : rows) {
    const size_t place = table.place(place_in(table.variables, row.variable),
                                     place_in(table.lead_times_h, row.lead_time_h),
                                     place_in(table.regions, row.region));
    for (const auto& [name, value] : row.figures) {
      if (table.figures.count(name) == 0 && (table.figures.size() + 1) * size > 16 * kMost)
        throw DataError(concat("'", file.string(), "' has too many figures for a page"), kHint);
      std::vector<double>& values = table.figures[name];
      values.resize(size, std::numeric_limits<double>::quiet_NaN());
      values[place] = value;
    }
  }
  return table;
}

}  // namespace aifs::report
