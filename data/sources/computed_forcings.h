// SPDX-License-Identifier: Apache-2.0
// Forcings that follow from place and date alone, as Anemoi computes them (earthkit-meteo): fp64,
// stored as fp32. Angles in degrees as datasets store them; a date is UTC.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace aifs::data {

// "cos_latitude", "sin_latitude", "cos_longitude", "sin_longitude", "cos_julian_day",
// "sin_julian_day", "cos_local_time", "sin_local_time", "insolation" (also called
// "cos_solar_zenith_angle").
bool is_computed_forcing(const std::string& name);
const std::vector<std::string>& computed_forcing_names();
// True if it is the same at all dates.
bool is_constant_forcing(const std::string& name);

// The values of a forcing for some cells. Precondition: is_computed_forcing(name).
void compute_forcing(const std::string& name, int64_t date_s, std::span<const double> latitudes_deg,
                     std::span<const double> longitudes_deg, std::span<float> out);

}  // namespace aifs::data
