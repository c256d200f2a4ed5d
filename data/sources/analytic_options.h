// SPDX-License-Identifier: Apache-2.0
// The options of the embedded analytic dataset (data/sources/analytic_dataset.h): a configuration
// that names it needs no data files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config.h"

namespace aifs::data {

// One level of the atmosphere; levels do not influence each other.
struct AnalyticLevel {
  int64_t level = 500;
  double geopotential_m2_s2 = 54600.0;
  double zonal_wind_m_s = 15.0;
  double wave_wind_m_s = 12.0;

  void bind(config::Binder& b);
};

// Cells in rows and columns of a rectangle, finer than those of the grid around it.
struct AnalyticRegion {
  double north_deg = 0.0, west_deg = 0.0, south_deg = 0.0, east_deg = 0.0;
  double spacing_deg = 0.0;      // 0: no region
  double max_distance_km = 0.0;  // of cells around it; 0: any

  bool is_given() const { return spacing_deg > 0.0; }
  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

struct AnalyticOptions {
  std::string grid;       // empty: that of the graph
  AnalyticRegion region;  // laid over the grid
  std::string start = "2020-01-01", end = "2020-12-31", frequency = "6h";
  int64_t seed = 1;
  int64_t min_degree = 2, max_degree = 12;
  double decay = 2.0;
  std::vector<AnalyticLevel> levels{
      {850, 14300.0, 8.0, 8.0}, {500, 54600.0, 15.0, 12.0}, {250, 101500.0, 25.0, 18.0}};
  std::string statistics_end;
  int64_t statistics_rows = 32;
  std::vector<std::string> tendencies;
  std::vector<std::string> drop;  // variables that the dataset does not have

  void bind(config::Binder& b);
  // Throws ConfigError for an empty axis, level twice, no levels, or durations that are not > 0.
  void validate(const std::string& path) const;

  // The axis: dates from `start` to `end` (inclusive), seconds since 1970 UTC.
  int64_t start_s() const;
  int64_t end_s() const;
  int64_t frequency_s() const;
  // Last date of the statistics period: statistics_end or end.
  int64_t statistics_end_s() const;
  // Time differences with tendency statistics: the frequency and `tendencies`; ascending.
  std::vector<int64_t> tendencies_s() const;
};

}  // namespace aifs::data
