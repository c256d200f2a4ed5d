// SPDX-License-Identifier: Apache-2.0
#include "verify/climatology.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/check.h"
#include "core/run_on_threads.h"
#include "core/time.h"
#include "verify/netcdf_output.h"

namespace aifs::verify {

namespace {

constexpr int64_t kDays = 366;
constexpr const char* kHint = "--climatology compute makes one of the dataset";

std::string text_of(const YearTime& time) {
  const int64_t leap_year_s = parse_date("2020-01-01");
  const CalendarTime at = to_calendar(leap_year_s + (time.day - 1) * kDay_s + time.second);
  char text[40];
  std::snprintf(text, sizeof text, "%02d-%02dT%02d:%02d", at.month, at.day, at.hour, at.minute);
  return text;
}

// The weight of a date in the mean of a time of the year; 0: none.
double weight_of(const YearTime& date, const YearTime& time, int64_t window_days) {
  const int64_t half = (window_days - 1) / 2;
  const int64_t distance = days_apart(date.day, time.day);
  if (date.second != time.second || distance > half) return 0.0;
  return 1.0 - static_cast<double>(distance) / static_cast<double>(half + 1);
}

// A row of the dataset, and its weights in the means of some times, by their position.
struct Row {
  int64_t number = 0;
  std::vector<std::pair<size_t, double>> weights = {};  // none is 0
};

std::vector<Row> rows_near(const data::DatasetInfo& info, std::span<const YearTime> times,
                           const ClimatologySettings& settings) {
  std::vector<Row> rows;
  std::vector<double> totals(times.size(), 0.0);
  for (int64_t r = 0; r < info.num_rows(); ++r) {
    const int64_t date_s = info.dates_s[static_cast<size_t>(r)];
    if (settings.first_s && date_s < *settings.first_s) continue;
    if (settings.last_s && date_s > *settings.last_s) continue;
    if (std::binary_search(info.missing_rows.begin(), info.missing_rows.end(), r)) continue;
    Row row{.number = r};
    const YearTime date = year_time(date_s);
    for (size_t k = 0; k < times.size(); ++k) {
      const double weight = weight_of(date, times[k], settings.window_days);
      if (weight == 0.0) continue;
      totals[k] += weight;
      row.weights.emplace_back(k, weight);
    }
    if (!row.weights.empty()) rows.push_back(std::move(row));
  }
  for (size_t k = 0; k < times.size(); ++k) {
    if (totals[k] > 0.0) continue;
    throw DataError(
        concat("'", info.name, "' has no date for a climatology of ", text_of(times[k]), " UTC"),
        "choose a wider --climatology-window or --climatology-period");
  }
  return rows;
}

// Sums of some times of the year.
class Means {
 public:
  Means(size_t num_times, size_t num_variables, size_t num_cells)
      : num_variables_(num_variables),
        num_cells_(num_cells),
        sums_(num_times * num_variables * num_cells, 0.0),
        totals_(sums_.size(), 0.0) {}

  static size_t bytes_of(size_t num_variables, size_t num_cells) {
    return num_variables * num_cells * 2 * sizeof(double);
  }

  // Adds a variable of a row, whose fields are (variables, N).
  void add(const Row& row, const std::vector<float>& fields, size_t variable) {
    const float* field = fields.data() + variable * num_cells_;
    for (const auto& [k, weight] : row.weights) {
      const size_t at = (k * num_variables_ + variable) * num_cells_;
      for (size_t i = 0; i < num_cells_; ++i) {
        if (std::isnan(field[i])) continue;
        sums_[at + i] += weight * static_cast<double>(field[i]);
        totals_[at + i] += weight;
      }
    }
  }

  // Of one time and variable; NaN where there was no value.
  std::vector<float> mean(size_t time, size_t variable) const {
    std::vector<float> values(num_cells_);
    const size_t at = (time * num_variables_ + variable) * num_cells_;
    for (size_t i = 0; i < num_cells_; ++i)
      values[i] = static_cast<float>(sums_[at + i] / totals_[at + i]);
    return values;
  }

 private:
  size_t num_variables_, num_cells_;
  std::vector<double> sums_, totals_;
};

// Reads as many rows at a time as there are threads; adds them in their order.
void add_rows(const DatasetCells& cells, std::span<const Row> rows, int64_t threads, Means& means) {
  std::vector<data::ReadScratch> scratch(static_cast<size_t>(threads));
  for (size_t first = 0; first < rows.size(); first += scratch.size()) {
    const size_t count = std::min(scratch.size(), rows.size() - first);
    std::vector<std::vector<float>> fields(count);
    run_on_threads(static_cast<int64_t>(count), threads, [&](int64_t k) {
      const auto at = static_cast<size_t>(k);
      fields[at] = cells.read(rows[first + at].number, scratch[at]);
    });
    run_on_threads(static_cast<int64_t>(cells.num_variables()), threads, [&](int64_t v) {
      for (size_t k = 0; k < count; ++k)
        means.add(rows[first + k], fields[k], static_cast<size_t>(v));
    });
  }
}

void define(const ForecastReader& forecast, const std::vector<std::string>& names,
            const std::vector<YearTime>& times, const ClimatologySettings& settings,
            NetcdfOutput& file) {
  std::vector<double> days, seconds;
  for (const YearTime& time : times) {
    days.push_back(static_cast<double>(time.day));
    seconds.push_back(static_cast<double>(time.second));
  }
  file.attribute("title", "means by day of the year and time of the day");
  file.attribute("window_days", std::to_string(settings.window_days));
  file.dimension("slot", times.size());
  file.dimension("cell", static_cast<size_t>(forecast.num_cells()));
  file.numbers("day_of_year", {"slot"}, days);
  file.numbers("second_of_day", {"slot"}, seconds, {{"units", "s"}});
  file.numbers("latitude", {"cell"}, forecast.latitudes_deg(), {{"units", "degrees_north"}});
  file.numbers("longitude", {"cell"}, forecast.longitudes_deg(), {{"units", "degrees_east"}});
  for (const std::string& name : names)
    file.fields(name, {"slot", "cell"});
}

}  // namespace

YearTime year_time(int64_t date_s) {
  const CalendarTime at = to_calendar(date_s);
  const int64_t day = from_calendar({.year = 2020, .month = at.month, .day = at.day}) -
                      from_calendar({.year = 2020});
  return {day / kDay_s + 1, at.hour * 3600 + at.minute * 60 + at.second};
}

int64_t days_apart(int64_t a, int64_t b) {
  const int64_t distance = std::abs(a - b) % kDays;
  return std::min(distance, kDays - distance);
}

void compute_climatology(const DatasetCells& cells, const ForecastReader& forecast,
                         const std::vector<std::string>& names, const std::vector<YearTime>& times,
                         const ClimatologySettings& settings, const fs::path& path) {
  constexpr size_t kMostBytes = size_t{8} << 30;
  const data::DatasetInfo& info = cells.dataset().info();
  rows_near(info, times, settings);  // says what is not there before anything is read
  NetcdfOutput file(path);
  define(forecast, names, times, settings, file);
  const size_t each = Means::bytes_of(names.size(), cells.num_cells());
  const size_t at_once = std::clamp<size_t>(kMostBytes / std::max<size_t>(each, 1), 1,
                                            std::max<size_t>(times.size(), 1));
  for (size_t first = 0; first < times.size(); first += at_once) {
    const size_t count = std::min(at_once, times.size() - first);
    Means means(count, names.size(), cells.num_cells());
    const auto some = std::span(times).subspan(first, count);
    add_rows(cells, rows_near(info, some, settings), settings.threads, means);
    for (size_t k = 0; k < count; ++k)
      for (size_t v = 0; v < names.size(); ++v)
        file.put(names[v], first + k, means.mean(k, v));
  }
  file.finish();
}

std::string climatology_key(const DatasetCells& cells, const ForecastReader& forecast,
                            const std::vector<std::string>& names,
                            const std::vector<YearTime>& times,
                            const ClimatologySettings& settings) {
  Sha256 hash;
  const auto add = [&](const auto& values) {
    const size_t count = values.size();
    hash.update(&count, sizeof count);
    hash.update(values.data(), count * sizeof(values[0]));
  };
  const data::DatasetInfo& info = cells.dataset().info();
  const std::vector<int64_t> window{settings.window_days, settings.first_s.value_or(INT64_MIN),
                                    settings.last_s.value_or(INT64_MAX)};
  add(window);
  add(info.dates_s);
  add(info.missing_rows);
  add(forecast.latitudes_deg());
  add(forecast.longitudes_deg());
  if (!cells.map_name().empty()) add(cells.map_name());
  add(times);
  for (const std::string& name : names) {
    add(name);
    const auto column = static_cast<size_t>(info.column(name));
    for (const auto* of : {&info.statistics.mean, &info.statistics.stdev, &info.statistics.minimum,
                           &info.statistics.maximum})
      if (column < of->size()) hash.update(&(*of)[column], sizeof(double));
  }
  return hash.finish().substr(0, 16);
}

Climatology::Climatology(const fs::path& path) : file_(path.string()) {
  const std::vector<double> days = file_.read_all(find("day_of_year"));
  const std::vector<double> seconds = file_.read_all(find("second_of_day"));
  if (days.size() != seconds.size())
    throw DataError(
        concat("'", path.string(), "': 'day_of_year' and 'second_of_day' differ in ", "length"),
        kHint);
  for (size_t k = 0; k < days.size(); ++k)
    times_.push_back({std::llround(days[k]), std::llround(seconds[k])});
  latitudes_deg_ = file_.read_all(find("latitude"));
  longitudes_deg_ = file_.read_all(find("longitude"));
}

const data::NetcdfVariable& Climatology::find(const std::string& name) const {
  const data::NetcdfVariable* found = file_.find(name);
  if (found) return *found;
  std::vector<std::string> known;
  for (const data::NetcdfVariable& variable : file_.variables())
    known.push_back(variable.name);
  throw DataError(concat("climatology '", file_.path(), "' has no variable '", name, "'"),
                  concat(nearest_names(name, known), "; ", kHint));
}

void Climatology::check(const ForecastReader& forecast, const std::vector<std::string>& names,
                        const std::vector<YearTime>& times) const {
  if (forecast.latitudes_deg() != latitudes_deg_ || forecast.longitudes_deg() != longitudes_deg_)
    throw DataError(
        concat("climatology '", file_.path(), "' is on another grid than '", forecast.path(),
               "': ", latitudes_deg_.size(), " and ", forecast.num_cells(), " cells"),
        kHint);
  for (const std::string& name : names) {
    const data::NetcdfVariable& variable = find(name);
    const std::vector<int64_t> shape{static_cast<int64_t>(times_.size()), forecast.num_cells()};
    if (variable.shape != shape)
      throw DataError(
          concat("climatology '", file_.path(), "': '", name, "' is not of its slots and cells"),
          kHint);
  }
  for (const YearTime& time : times) {
    if (std::find(times_.begin(), times_.end(), time) != times_.end()) continue;
    throw DataError(concat("climatology '", file_.path(), "' has nothing for ", text_of(time),
                           " UTC, which is forecast"),
                    kHint);
  }
}

void Climatology::read(const std::string& name, int64_t date_s, std::span<float> out) const {
  const auto found = std::find(times_.begin(), times_.end(), year_time(date_s));
  AIFS_CHECK(found != times_.end(), "no such time of the year");
  const std::vector<int64_t> start{found - times_.begin(), 0};
  const std::vector<int64_t> count{1, static_cast<int64_t>(out.size())};
  file_.read(find(name), start, count, out.data());
}

}  // namespace aifs::verify
