// SPDX-License-Identifier: Apache-2.0
#include "verify/forecast_reader.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/time.h"

namespace aifs::verify {

namespace {

constexpr const char* kHint = "name files that `aifs-train forecast` has written";

}  // namespace

ForecastReader::ForecastReader(const fs::path& path) : file_(path.string()) {
  read_times();
  read_cells();
  for (const data::NetcdfVariable& variable : file_.variables()) {
    const bool is_field = variable.dimensions.size() > 1 && variable.dimensions[0] == "time";
    if (!is_field) continue;
    const int64_t members = variable.dimensions[1] == "member" ? variable.shape[1] : 1;
    if (variables_.empty()) num_members_ = members;
    if (members != num_members_ ||
        variable.num_items() !=
            static_cast<int64_t>(lead_times_s_.size()) * num_members_ * num_cells())
      throw DataError(concat("'", file_.path(), "': '", variable.name, "' has another shape than ",
                             "the coordinates, or variables before it"),
                      kHint);
    variables_.push_back(variable.name);
  }
  if (variables_.empty()) throw DataError(concat("'", file_.path(), "' has no fields"), kHint);
}

const data::NetcdfVariable& ForecastReader::find(const std::string& name) const {
  const data::NetcdfVariable* found = file_.find(name);
  if (!found) throw DataError(concat("'", file_.path(), "' has no variable '", name, "'"), kHint);
  return *found;
}

void ForecastReader::read_times() {
  const data::NetcdfVariable& time = find("time");
  const std::string units = file_.text(time, "units"), since = "seconds since ";
  if (!units.starts_with(since))
    throw DataError(concat("'", file_.path(), "': 'time' is in '", units,
                           "', expected seconds since the start of the forecast"),
                    kHint);
  try {
    start_s_ = parse_date(units.substr(since.size()));
  } catch (const Error& error) {
    throw DataError(concat("'", file_.path(), "': units of 'time', '", units, "': ", error.what()),
                    kHint);
  }
  for (const double seconds : file_.read_all(time))
    lead_times_s_.push_back(std::llround(seconds));
}

void ForecastReader::read_cells() {
  const data::NetcdfVariable& latitude = find("latitude");
  const std::vector<double> latitudes = file_.read_all(latitude);
  const std::vector<double> longitudes = file_.read_all(find("longitude"));
  if (latitude.dimensions != std::vector<std::string>{"latitude"}) {  // of each cell
    if (latitudes.size() != longitudes.size())
      throw DataError(concat("'", file_.path(), "' has ", latitudes.size(), " latitudes and ",
                             longitudes.size(), " longitudes"),
                      kHint);
    latitudes_deg_ = latitudes, longitudes_deg_ = longitudes;
    return;
  }
  for (const double lat : latitudes) {
    for (const double lon : longitudes) {
      latitudes_deg_.push_back(lat);
      longitudes_deg_.push_back(lon);
    }
  }
}

void ForecastReader::read(const std::string& name, size_t lead_time, std::span<float> out) const {
  if (!file_.find(name))
    throw DataError(concat("'", file_.path(), "' has no variable '", name, "'"),
                    "choose variables that all forecasts have: --variables");
  const data::NetcdfVariable& variable = find(name);
  std::vector<int64_t> start(variable.shape.size(), 0), count = variable.shape;
  start[0] = static_cast<int64_t>(lead_time);
  count[0] = 1;
  AIFS_CHECK(static_cast<int64_t>(out.size()) == num_members_ * num_cells(), "another size");
  file_.read(variable, start, count, out.data());
}

std::vector<fs::path> forecast_files(const fs::path& given) {
  if (!path_exists(given)) throw DataError(concat("'", given.string(), "' does not exist"), kHint);
  if (!folder_exists(given)) return {given};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(given)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("forecast-") && name.ends_with(".nc")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty())
    throw DataError(concat("'", given.string(), "' has no files called forecast-*.nc"), kHint);
  return files;
}

}  // namespace aifs::verify
