// SPDX-License-Identifier: Apache-2.0
#include "verify/stations.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <sstream>
#include <unordered_map>

#include "core/check.h"
#include "core/time.h"
#include "data/sources/cf_time.h"
#include "data/sources/netcdf_file.h"

namespace aifs::verify {

namespace {

bool is_height(const std::string& name) {
  return name == "height" || name == "elevation" || name == "altitude";
}

void check_place(double latitude_deg, double longitude_deg) {
  if (!(std::abs(latitude_deg) <= 90.0 && std::abs(longitude_deg) <= 360.0))
    throw DataError(concat(latitude_deg, " N ", longitude_deg, " E is no place"),
                    "degrees, -90 to 90 and -360 to 360");
}

[[noreturn]] void throw_no_variable(const std::string& path, const std::vector<std::string>& wanted,
                                    const std::vector<std::string>& there) {
  std::string names;
  for (const std::string& name : there)
    names += concat(names.empty() ? "" : ", ", name);
  throw DataError(
      concat("station file '", path, "' has none of the variables that are scored: '", names, "'"),
      there.empty() ? "" : nearest_names(there.front(), wanted));
}

// Cells of a line, which may stand in double quotes.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char letter = line[i];
    if (letter == '"' && is_quoted && i + 1 < line.size() && line[i + 1] == '"')
      cells.back() += line[++i];
    else if (letter == '"')
      is_quoted = !is_quoted;
    else if (letter == ',' && !is_quoted)
      cells.emplace_back();
    else if (letter != '\r')
      cells.back() += letter;
  }
  if (is_quoted) throw DataError("a quote is not closed");
  for (std::string& cell : cells) {
    const size_t first = cell.find_first_not_of(" \t"), last = cell.find_last_not_of(" \t");
    cell = first == std::string::npos ? "" : cell.substr(first, last - first + 1);
  }
  return cells;
}

// NaN for what is missing.
double number_in(const std::string& cell, const std::string& column) {
  if (cell.empty() || cell == "NA" || cell == "nan" || cell == "NaN") return NAN;
  char* end = nullptr;
  const double value = std::strtod(cell.c_str(), &end);
  if (*end != '\0' || !std::isfinite(value))
    throw DataError(concat("'", cell, "' in column '", column, "' is no number"));
  return value;
}

class TableReader {
 public:
  TableReader(const fs::path& path, const std::vector<std::string>& wanted)
      : found_{.path = path.string()} {
    std::istringstream lines(read_file(path));
    std::string line;
    for (number_ = 1; std::getline(lines, line); ++number_) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      try {
        columns_.empty() ? read_head(line, wanted) : read_line(line);
      } catch (const Error& error) {
        throw DataError(
            concat("station file '", found_.path, "', line ", number_, ": ", error.what()),
            error.hint());
      }
      if (columns_.size() && found_.variables.empty())
        throw_no_variable(found_.path, wanted, others_);
    }
    if (columns_.empty()) throw DataError(concat("station file '", found_.path, "' is empty"));
    spread_values();
  }
  Observations take() && { return std::move(found_); }

 private:
  struct Value {
    int64_t date_s;
    size_t station, variable;
    float value;
  };

  size_t column(const std::string& name) const {
    const auto found = std::find(columns_.begin(), columns_.end(), name);
    if (found == columns_.end())
      throw DataError(concat("there is no column '", name, "'"),
                      "station, latitude, longitude and time are needed");
    return static_cast<size_t>(found - columns_.begin());
  }

  void read_head(const std::string& line, const std::vector<std::string>& wanted) {
    columns_ = cells_of(line);
    for (size_t k = 0; k < columns_.size(); ++k) {
      if (std::count(columns_.begin(), columns_.end(), columns_[k]) > 1)
        throw DataError(concat("column '", columns_[k], "' is there twice"));
      if (std::find(wanted.begin(), wanted.end(), columns_[k]) != wanted.end()) {
        found_.variables.push_back(columns_[k]);
        variable_columns_.push_back(k);
      } else {
        others_.push_back(columns_[k]);
      }
      found_.has_heights = found_.has_heights || is_height(columns_[k]);
    }
    station_ = column("station"), time_ = column("time");
    latitude_ = column("latitude"), longitude_ = column("longitude");
    for (const char* known : {"station", "time", "latitude", "longitude"})
      std::erase(others_, known);
    std::erase_if(others_, is_height);
  }

  size_t station_of(const std::vector<std::string>& cells) {
    const Station station{cells[station_], number_in(cells[latitude_], "latitude"),
                          number_in(cells[longitude_], "longitude")};
    if (station.name.empty()) throw DataError("the station has no name");
    check_place(station.latitude_deg, station.longitude_deg);
    const auto [known, is_new] = numbers_.try_emplace(station.name, found_.stations.size());
    if (is_new) found_.stations.push_back(station);
    const Station& before = found_.stations[known->second];
    if (before.latitude_deg != station.latitude_deg ||
        before.longitude_deg != station.longitude_deg)
      throw DataError(concat("station '", station.name, "' was at ", before.latitude_deg, " N ",
                             before.longitude_deg, " E in a line before"));
    return known->second;
  }

  void read_line(const std::string& line) {
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() != columns_.size())
      throw DataError(concat(cells.size(), " cells, but ", columns_.size(), " columns"));
    const size_t station = station_of(cells);
    const int64_t date_s = parse_date(cells[time_]);
    size_t& line_before = lines_[{date_s, station}];
    if (line_before > 0)
      throw DataError(concat("station '", cells[station_], "' has values of that time in line ",
                             line_before, ", too"));
    line_before = number_;
    for (size_t v = 0; v < variable_columns_.size(); ++v) {
      const size_t k = variable_columns_[v];
      const double value = number_in(cells[k], columns_[k]);
      if (!std::isnan(value)) values_.push_back({date_s, station, v, static_cast<float>(value)});
    }
  }

  void spread_values() {
    const size_t num_stations = found_.stations.size();
    std::set<int64_t> dates;
    for (const Value& value : values_)
      dates.insert(value.date_s);
    constexpr double kMost = 5e8;  // 2 GB
    if (static_cast<double>(dates.size()) * static_cast<double>(num_stations) *
            static_cast<double>(found_.variables.size()) >
        kMost)
      throw DataError(concat(dates.size(), " times of ", num_stations, " stations and ",
                             found_.variables.size(), " variables are too many for one file"),
                      "keep the valid times of the forecasts only, or split it by time");
    for (const Value& value : values_) {
      auto& row =
          found_.values.try_emplace(value.date_s, found_.variables.size() * num_stations, NAN)
              .first->second;
      row[value.variable * num_stations + value.station] = value.value;
    }
  }

  Observations found_;
  size_t number_ = 0;  // of the line
  std::vector<std::string> columns_, others_;
  std::vector<size_t> variable_columns_;
  size_t station_ = 0, time_ = 0, latitude_ = 0, longitude_ = 0;
  std::unordered_map<std::string, size_t> numbers_;
  std::map<std::pair<int64_t, size_t>, size_t> lines_;
  std::vector<Value> values_;
};

class SeriesReader {
 public:
  SeriesReader(const fs::path& path, const std::vector<std::string>& wanted)
      : file_(path.string()), found_{.path = path.string()} {
    read_stations();
    read_times();
    std::vector<std::string> others;
    for (const data::NetcdfVariable& variable : file_.variables()) {
      if (variable.dimensions.size() != 2 || !variable.is_number) continue;
      if (std::find(wanted.begin(), wanted.end(), variable.name) != wanted.end())
        found_.variables.push_back(variable.name);
      else
        others.push_back(variable.name);
    }
    if (found_.variables.empty()) throw_no_variable(found_.path, wanted, others);
    for (size_t v = 0; v < found_.variables.size(); ++v)
      read_variable(v);
  }
  Observations take() && { return std::move(found_); }

 private:
  DataError error(const std::string& what) const {
    return DataError(concat("station file '", found_.path, "': ", what),
                     "a table, or time series (station, time) of CF 1.8");
  }

  const data::NetcdfVariable& find(const std::vector<const char*>& names) const {
    for (const char* name : names)
      if (const data::NetcdfVariable* found = file_.find(name)) {
        if (found->dimensions.size() != 1)
          throw error(concat("'", name, "' has ", found->dimensions.size(), " dimensions"));
        return *found;
      }
    throw error(concat("there is no variable '", names.front(), "'"));
  }

  void read_stations() {
    const data::NetcdfVariable& latitude = find({"latitude", "lat"});
    const std::vector<double> latitudes = file_.read_all(latitude);
    const std::vector<double> longitudes = file_.read_all(find({"longitude", "lon"}));
    if (latitudes.size() != longitudes.size())
      throw error(concat(latitudes.size(), " latitudes and ", longitudes.size(), " longitudes"));
    station_dimension_ = latitude.dimensions[0];
    for (size_t s = 0; s < latitudes.size(); ++s) {
      try {
        check_place(latitudes[s], longitudes[s]);
      } catch (const DataError& cause) {
        throw error(concat("station ", s, ": ", cause.what()));
      }
      found_.stations.push_back({std::to_string(s), latitudes[s], longitudes[s]});
    }
    for (const data::NetcdfVariable& variable : file_.variables())
      found_.has_heights = found_.has_heights || is_height(variable.name);
  }

  void read_times() {
    const data::NetcdfVariable& time = find({"time"});
    time_dimension_ = time.dimensions[0];
    try {
      const data::CfTime units(file_.text(time, "units"), file_.text(time, "calendar"));
      for (const double count : file_.read_all(time))
        dates_s_.push_back(units.to_date(count));
    } catch (const DataError& cause) {
      throw error(concat("'time': ", cause.what()));
    }
    std::vector<int64_t> sorted = dates_s_;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) throw error(concat(format_date(*twice), " is there twice"));
  }

  void read_variable(size_t v) {
    const data::NetcdfVariable& variable = *file_.find(found_.variables[v]);
    const std::vector<std::string> by_station{station_dimension_, time_dimension_};
    const std::vector<std::string> by_time{time_dimension_, station_dimension_};
    if (variable.dimensions != by_station && variable.dimensions != by_time)
      throw error(concat("'", variable.name, "' is not of station and time"));
    const bool is_by_time = variable.dimensions == by_time;
    const auto first = [&](const char* attribute, double otherwise) {
      const std::vector<double> numbers = file_.numbers(variable, attribute);
      return numbers.empty() ? otherwise : numbers.front();
    };
    const double fill = first("_FillValue", variable.default_fill.value_or(NAN));
    const double missing = first("missing_value", NAN);
    const double scale = first("scale_factor", 1.0), offset = first("add_offset", 0.0);
    const std::vector<double> values = file_.read_all(variable);
    const size_t num_stations = found_.stations.size(), num_times = dates_s_.size();
    for (size_t t = 0; t < num_times; ++t) {
      auto& row =
          found_.values.try_emplace(dates_s_[t], found_.variables.size() * num_stations, NAN)
              .first->second;
      for (size_t s = 0; s < num_stations; ++s) {
        const double value = values[is_by_time ? t * num_stations + s : s * num_times + t];
        if (!std::isfinite(value) || value == fill || value == missing) continue;
        row[v * num_stations + s] = static_cast<float>(scale * value + offset);
      }
    }
  }

  data::NetcdfFile file_;
  Observations found_;
  std::string station_dimension_, time_dimension_;
  std::vector<int64_t> dates_s_;
};

}  // namespace

Observations read_observations(const fs::path& path, const std::vector<std::string>& variables) {
  if (!path_exists(path))
    throw DataError(concat("station file '", path.string(), "' does not exist"));
  const std::string name = path.extension().string();
  if (name == ".nc" || name == ".nc4" || name == ".netcdf")
    return SeriesReader(path, variables).take();
  return TableReader(path, variables).take();
}

}  // namespace aifs::verify
