// SPDX-License-Identifier: Apache-2.0
// What is usual at a time of the year and of the day: means over the years of a dataset.
//
// The mean of a day is over all dates of that hour whose days are less than half a window away,
// weighted 1 - |days| / (half + 1) with half = (window - 1) / 2. Days are counted in a year of 366,
// so that those after February have one number in all years; the year closes on itself.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/file_io.h"
#include "data/sources/netcdf_file.h"
#include "verify/truth.h"

namespace aifs::verify {

// A time of the year: the day, 1 to 366 as in a leap year, and the second of the day, UTC.
struct YearTime {
  int64_t day = 1, second = 0;
  auto operator<=>(const YearTime&) const = default;
};
YearTime year_time(int64_t date_s);
// Days between two days of the year, 0 to 183.
int64_t days_apart(int64_t a, int64_t b);

struct ClimatologySettings {
  int64_t window_days = 61;                          // odd
  std::optional<int64_t> first_s = {}, last_s = {};  // dates that count; empty: all
  int64_t threads = 1;
};

// Computes means for some times of the year and writes them to a netCDF file: `day_of_year` and
// `second_of_day` (slot), latitude and longitude (cell), and each variable (slot, cell) in fp32. A
// cell's mean is over the dates that have a value. Throws DataError if no date is near a time.
// `names` are those of the variables of `cells`, `forecast` has the coordinates.
void compute_climatology(const DatasetCells& cells, const ForecastReader& forecast,
                         const std::vector<std::string>& names, const std::vector<YearTime>& times,
                         const ClimatologySettings& settings, const fs::path& path);

// Names by what a computed one depends on: the dates, statistics and cells of the dataset,
// variables, times and settings. 16 hexadecimal digits.
std::string climatology_key(const DatasetCells& cells, const ForecastReader& forecast,
                            const std::vector<std::string>& names,
                            const std::vector<YearTime>& times,
                            const ClimatologySettings& settings);

// An open file of the above. Thread-safe.
class Climatology {
 public:
  // Throws DataError naming the file and what it lacks.
  explicit Climatology(const fs::path& path);

  // Throws DataError if the file has other cells than a forecast, or lacks a variable (with near
  // names) or a time of the year.
  void check(const ForecastReader& forecast, const std::vector<std::string>& names,
             const std::vector<YearTime>& times) const;
  // The field of a variable at a date, (N).
  void read(const std::string& name, int64_t date_s, std::span<float> out) const;

 private:
  const data::NetcdfVariable& find(const std::string& name) const;

  data::NetcdfFile file_;
  std::vector<YearTime> times_;
  std::vector<double> latitudes_deg_, longitudes_deg_;
};

}  // namespace aifs::verify
