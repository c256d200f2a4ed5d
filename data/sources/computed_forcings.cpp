// SPDX-License-Identifier: Apache-2.0
#include "data/sources/computed_forcings.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/check.h"
#include "core/time.h"

namespace aifs::data {

namespace {

constexpr double kRadians = std::numbers::pi / 180.0;
constexpr double kTurn = 2.0 * std::numbers::pi;

// Days since the year began, in every year over 365.25: the angle of the season.
double season_rad(int64_t date_s) {
  const int64_t year = to_calendar(date_s).year;
  const int64_t begin_s = from_calendar({.year = year});
  return kTurn * (static_cast<double>(date_s - begin_s) / kDay_s) / 365.25;
}

double second_of_day(int64_t date_s) {
  const int64_t rest = date_s % 86400;
  return static_cast<double>(rest < 0 ? rest + 86400 : rest);
}

double local_time_rad(int64_t date_s, double longitude_deg) {
  double hours = std::fmod(longitude_deg / 15.0 + second_of_day(date_s) / 3600.0, 24.0);
  if (hours < 0.0) hours += 24.0;
  return kTurn * hours / 24.0;
}

// Cosine of the angle between the sun and the zenith, 0 by night. The hour is the full one.
struct Sun {
  double declination_rad, correction_deg, hour;

  explicit Sun(int64_t date_s) : hour(std::floor(second_of_day(date_s) / 3600.0)) {
    const double a = season_rad(date_s);
    declination_rad = kRadians * (0.396372 - 22.91327 * std::cos(a) + 4.025430 * std::sin(a) -
                                  0.387205 * std::cos(2.0 * a) + 0.051967 * std::sin(2.0 * a) -
                                  0.154527 * std::cos(3.0 * a) + 0.084798 * std::sin(3.0 * a));
    correction_deg = 0.004297 + 0.107029 * std::cos(a) - 1.837877 * std::sin(a) -
                     0.837378 * std::cos(2.0 * a) - 2.340475 * std::sin(2.0 * a);
  }
  double height(double latitude_deg, double longitude_deg) const {
    const double angle = kRadians * (15.0 * (hour - 12.0) + longitude_deg + correction_deg);
    const double latitude = kRadians * latitude_deg;
    return std::max(0.0, std::sin(declination_rad) * std::sin(latitude) +
                             std::cos(declination_rad) * std::cos(latitude) * std::cos(angle));
  }
};

}  // namespace

const std::vector<std::string>& computed_forcing_names() {
  static const std::vector<std::string> names{
      "cos_latitude",   "sin_latitude",          "cos_longitude",  "sin_longitude",
      "cos_julian_day", "sin_julian_day",        "cos_local_time", "sin_local_time",
      "insolation",     "cos_solar_zenith_angle"};
  return names;
}

bool is_computed_forcing(const std::string& name) {
  const std::vector<std::string>& names = computed_forcing_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_constant_forcing(const std::string& name) {
  return name.ends_with("_latitude") || name.ends_with("_longitude");
}

void compute_forcing(const std::string& name, int64_t date_s, std::span<const double> latitudes_deg,
                     std::span<const double> longitudes_deg, std::span<float> out) {
  const Sun sun(date_s);
  const double season = season_rad(date_s);
  const auto fill = [&](const auto& value) {
    for (size_t n = 0; n < out.size(); ++n)
      out[n] = static_cast<float>(value(latitudes_deg[n], longitudes_deg[n]));
  };
  const bool is_cos = name.starts_with("cos_");
  const auto turned = [is_cos](double angle) { return is_cos ? std::cos(angle) : std::sin(angle); };
  if (name.ends_with("_latitude")) {
    fill([&](double lat, double) { return turned(kRadians * lat); });
  } else if (name.ends_with("_longitude")) {
    fill([&](double, double lon) { return turned(kRadians * lon); });
  } else if (name.ends_with("_julian_day")) {
    fill([&](double, double) { return turned(season); });
  } else if (name.ends_with("_local_time")) {
    fill([&](double, double lon) { return turned(local_time_rad(date_s, lon)); });
  } else {
    AIFS_CHECK(name == "insolation" || name == "cos_solar_zenith_angle", name);
    fill([&](double lat, double lon) { return sun.height(lat, lon); });
  }
}

}  // namespace aifs::data
