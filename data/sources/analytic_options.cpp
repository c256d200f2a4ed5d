// SPDX-License-Identifier: Apache-2.0
#include "data/sources/analytic_options.h"

#include <algorithm>

#include "core/check.h"
#include "core/time.h"

namespace aifs::data {

void AnalyticLevel::bind(config::Binder& b) {
  b.integer("level", level, {.min = 1, .max = 2000},
            {"pressure; the suffix of the variables' names", "hPa"});
  b.number("geopotential", geopotential_m2_s2, {}, {"global mean of the geopotential", "m2 s-2"});
  b.number("zonal_wind", zonal_wind_m_s, {.min = -200.0, .max = 200.0},
           {"wind of the solid-body rotation at the equator, positive eastwards", "m s-1"});
  b.number("wave_wind", wave_wind_m_s, {.min = 0.0, .max = 200.0},
           {"root mean square over the sphere of the wind of all waves", "m s-1"});
}

void AnalyticRegion::bind(config::Binder& b) {
  const config::Bounds<double> latitudes{.min = -90.0, .max = 90.0};
  const config::Bounds<double> longitudes{.min = -360.0, .max = 360.0};
  b.number("north", north_deg, latitudes, {"latitude of the first row", "degree"});
  b.number("west", west_deg, longitudes, {"longitude of the first column", "degree"});
  b.number("south", south_deg, latitudes, {"latitude of the last row", "degree"});
  b.number("east", east_deg, longitudes, {"longitude of the last column", "degree"});
  b.number("spacing", spacing_deg, {.min = 0.0, .max = 90.0},
           {"distance of rows and columns; 0: no region", "degree"});
  b.number("max_distance_km", max_distance_km, {.min = 0.0},
           {"cells of the grid further off the region are left out; 0: none", "km"});
}

void AnalyticRegion::validate(const std::string& path) const {
  if (!is_given()) {
    config::refuse_unused(*this, {}, path, "a region without spacing");
    return;
  }
  if (north_deg <= south_deg) throw ConfigError(path + ".north", "must be north of south");
  if (east_deg <= west_deg || east_deg - west_deg >= 360.0)
    throw ConfigError(path + ".east", "must be east of west, by less than 360 degrees");
}

void AnalyticOptions::bind(config::Binder& b) {
  b.text("grid", grid,
         {"Gaussian grid of the cells, such as o16; empty: that of graph.grid. With it, graph.grid "
          "is \"dataset\""});
  b.section("region", region,
            {"finer cells of a rectangle, which come before those of the grid that they do not "
             "cover: two grids, as data.dataset.cutout gives"});
  b.text("start", start, {"first date"}, config::TextKind::kDate);
  b.text("end", end, {"last date, inclusive"}, config::TextKind::kDate);
  b.text("frequency", frequency, {"spacing of the dates"}, config::TextKind::kDuration);
  b.integer("seed", seed, {.min = 0}, {"seed of the amplitudes and phases of the waves"});
  const config::Bounds<int64_t> degrees{.min = 1, .max = 200};  // more take too long
  b.integer("min_degree", min_degree, degrees, {"least spherical-harmonic degree of the waves"});
  b.integer("max_degree", max_degree, degrees, {"largest spherical-harmonic degree of the waves"});
  b.number("decay", decay, {.min = 0.0, .max = 10.0},
           {"amplitudes of the streamfunction fall as degree to the power of minus this"});
  b.list("levels", levels, {"independent levels; the first also has kinetic energy"});
  b.text("statistics_end", statistics_end,
         {"last date that statistics are taken from; empty takes all dates"},
         config::TextKind::kDate);
  b.integer("statistics_rows", statistics_rows, {.min = 1},
            {"at most so many dates, evenly spread, are sampled for statistics"});
  b.text_list("tendencies", tendencies,
              {"time differences with tendency statistics, besides the frequency"},
              config::TextKind::kDuration);
  b.text_list("drop", drop, {"variables that the dataset does not have"});
}

void AnalyticOptions::validate(const std::string& path) const {
  if (region.is_given() && grid.empty()) {
    throw ConfigError(path + ".grid", "is empty, and a region needs a grid around it",
                      "name one, for example \"o16\", and set graph.grid to \"dataset\"");
  }
  if (frequency_s() <= 0) throw ConfigError(path + ".frequency", "must be longer than nothing");
  if (start.empty()) throw ConfigError(path + ".start", "must be a date");
  if (end.empty()) throw ConfigError(path + ".end", "must be a date");
  constexpr int64_t kMostDates = 10'000'000;
  if ((end_s() - start_s()) / frequency_s() >= kMostDates) {
    throw ConfigError(path + ".frequency", concat(frequency, " gives more than ", kMostDates,
                                                  " dates from ", start, " to ", end));
  }
  if (end_s() < start_s()) throw ConfigError(path + ".end", "is before start: no date is left");
  if (statistics_end_s() < start_s()) {
    throw ConfigError(path + ".statistics_end", "is before start: statistics of nothing");
  }
  if (max_degree < min_degree) {
    throw ConfigError(path + ".max_degree", concat(max_degree, " is less than min_degree"));
  }
  if (levels.empty()) throw ConfigError(path + ".levels", "at least one level is needed");
  for (size_t i = 0; i < levels.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (levels[i].level == levels[j].level) {
        throw ConfigError(concat(path, ".levels.", i), concat(levels[i].level, " is given twice"));
      }
    }
  }
  for (size_t i = 0; i < tendencies.size(); ++i) {
    if (parse_duration(tendencies[i]) <= 0) {
      throw ConfigError(concat(path, ".tendencies.", i), "must be longer than nothing");
    }
  }
}

int64_t AnalyticOptions::start_s() const {
  return parse_date(start);
}
int64_t AnalyticOptions::end_s() const {
  return parse_date(end, DateEnd::kEnd);
}
int64_t AnalyticOptions::frequency_s() const {
  return parse_duration(frequency);
}

int64_t AnalyticOptions::statistics_end_s() const {
  return statistics_end.empty() ? end_s()
                                : std::min(end_s(), parse_date(statistics_end, DateEnd::kEnd));
}

std::vector<int64_t> AnalyticOptions::tendencies_s() const {
  std::vector<int64_t> result{frequency_s()};
  for (const std::string& duration : tendencies)
    result.push_back(parse_duration(duration));
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

}  // namespace aifs::data
