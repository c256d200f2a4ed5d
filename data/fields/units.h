// SPDX-License-Identifier: Apache-2.0
// Units of measurement as datasets write them: "K", "degC", "hPa", "m s-1", "m/s", "kg m**-2",
// "m2 s^-2", "%". Enough for the fields of the atmosphere and the sea; not a unit library.
#pragma once

#include <array>
#include <optional>
#include <string>

namespace aifs::data {

// In base units: value * factor + offset, of the powers of m, kg, s, K, mol, A, cd and rad.
struct Unit {
  std::array<int, 8> powers{};
  double factor = 1.0, offset = 0.0;
  bool operator==(const Unit&) const = default;
};

// Nothing for what is not known.
std::optional<Unit> parse_unit(const std::string& text);

// y = a x + b from one unit to another.
struct UnitMap {
  double a = 1.0, b = 0.0;
};
// Nothing if one of them is not known, or they measure different things.
std::optional<UnitMap> convert_units(const std::string& from, const std::string& to);

}  // namespace aifs::data
