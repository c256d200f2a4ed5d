// SPDX-License-Identifier: Apache-2.0
#include "data/fields/units.h"

#include "tests/support/catch.h"

using namespace aifs::data;

TEST_CASE("units are converted as tables of physics have it", "[units]") {
  struct Case {
    const char *from, *to;
    double a, b;
  };
  for (const Case& c :
       {Case{"K", "degC", 1.0, -273.15}, Case{"degC", "K", 1.0, 273.15},
        Case{"K", "degF", 1.8, -459.67}, Case{"m", "mm", 1000.0, 0.0}, Case{"Pa", "hPa", 0.01, 0.0},
        Case{"m s-1", "km/h", 3.6, 0.0}, Case{"m/s", "knots", 1.9438444924406046, 0.0},
        Case{"kg m**-2 s**-1", "g m-2 s^-1", 1000.0, 0.0}, Case{"J m-2", "kW s m**-2", 1e-3, 0.0},
        Case{"%", "1", 0.01, 0.0}, Case{"kg kg-1", "g kg**-1", 1000.0, 0.0},
        Case{"m2 s-2", "J/kg", 1.0, 0.0}}) {
    INFO(c.from << " to " << c.to);
    const auto map = convert_units(c.from, c.to);
    REQUIRE(map);
    REQUIRE(map->a == Approx(c.a).epsilon(1e-14));
    REQUIRE(map->b == Approx(c.b).epsilon(1e-14));
  }
}

TEST_CASE("what is not known or measures something else is not converted", "[units]") {
  for (const auto& [from, to] :
       {std::pair("K", "m"), std::pair("m", "m2"), std::pair("K", "blue"),
        std::pair("m s-", "m s-1"), std::pair("m/", "m"), std::pair("degC s-", "K"),
        std::pair("m^", "m"), std::pair("2", "1"), std::pair("mdegC", "K")}) {
    INFO(from << " to " << to);
    REQUIRE_FALSE(convert_units(from, to));
  }
}

TEST_CASE("spellings of a unit are the same unit", "[units]") {
  for (const auto& [a, b] : {std::pair("m s-1", "m/s"), std::pair("m s**-1", "m.s^-1"),
                             std::pair("hPa", "mbar"), std::pair("kg", "1000 g")}) {
    INFO(a << " and " << b);
    const auto one = parse_unit(a), other = parse_unit(b);
    if (std::string(b) == "1000 g") {
      REQUIRE_FALSE(other);  // factors are no units
      continue;
    }
    REQUIRE(one);
    REQUIRE(other);
    REQUIRE(one->powers == other->powers);
    REQUIRE(one->factor == Approx(other->factor).epsilon(1e-14));
  }
}
