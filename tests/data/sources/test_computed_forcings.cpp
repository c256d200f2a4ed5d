// SPDX-License-Identifier: Apache-2.0
#include "data/sources/computed_forcings.h"

#include "core/time.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

void check(const char* name, const char* date, const std::vector<double>& expected) {
  const std::vector<double> lat{0.0, 51.5, -33.0, 88.57}, lon{0.0, 359.9, 151.2, 120.0};
  std::vector<float> values(4);
  compute_forcing(name, parse_date(date), lat, lon, values);
  CAPTURE(name, date);
  for (size_t i = 0; i < 4; ++i)
    CHECK(static_cast<double>(values[i]) == Approx(expected[i]).margin(6e-8));
}

}  // namespace

// Values that Anemoi stored for these places and dates.
TEST_CASE("forcings are those that Anemoi computes", "[data]") {
  const char *one = "2020-01-01T06:00", *other = "2021-07-15T18:30";
  for (const char* date : {one, other}) {
    check("cos_latitude", date, {1, 0.622514637, 0.838670568, 0.0249556173});
    check("sin_longitude", date, {0, -0.00174532837, 0.481753674, 0.866025404});
  }
  const auto same = [](double x) { return std::vector<double>(4, x); };
  check("cos_julian_day", one, same(0.999990752));
  check("sin_julian_day", one, same(0.0043005927));
  check("cos_julian_day", other, same(-0.974539088));
  check("sin_julian_day", other, same(-0.224217674));
  check("cos_local_time", one, {6.1e-17, 0.00174532837, -0.481753674, -0.866025404});
  check("sin_local_time", one, {1, 0.999998477, -0.87630668, -0.5});
  check("cos_local_time", other, {0.130526192, 0.128795597, 0.36325123, 0.79335334});
  check("sin_local_time", other, {-0.991444861, -0.991671162, 0.931691228, 0.608761429});
  check("insolation", one, {0, 0, 0.593826617, 0});
  check("cos_solar_zenith_angle", other, {0.023759341, 0.303455989, 0, 0.347056168});
}

TEST_CASE("forcings have names, and some do not change in time", "[data]") {
  for (const std::string& name : computed_forcing_names()) {
    CAPTURE(name);
    CHECK(is_computed_forcing(name));
    std::vector<float> a(1), b(1);
    const std::vector<double> lat{40.0}, lon{10.0};
    compute_forcing(name, parse_date("2020-06-01T12:00"), lat, lon, a);
    compute_forcing(name, parse_date("2020-03-01T15:00"), lat, lon, b);
    CHECK((a == b) == is_constant_forcing(name));
  }
  CHECK_FALSE(is_computed_forcing("2t"));
}
