// SPDX-License-Identifier: Apache-2.0
#include "data/fields/units.h"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numbers>

namespace aifs::data {

namespace {

enum Base : size_t { kMetre, kKilogram, kSecond, kKelvin, kMole, kAmpere, kCandela, kRadian };

struct Entry {
  Unit unit;
  bool takes_prefix = false;
};

Unit make(double factor, std::initializer_list<std::pair<Base, int>> powers, double offset = 0.0) {
  Unit unit{.powers = {}, .factor = factor, .offset = offset};
  for (const auto& [base, power] : powers)
    unit.powers[base] = power;
  return unit;
}

const std::map<std::string, Entry>& known_units() {
  static const std::map<std::string, Entry> kUnits = [] {
    std::map<std::string, Entry> units;
    const auto add = [&](const Unit& unit, bool prefix, std::initializer_list<const char*> names) {
      for (const char* name : names)
        units[name] = {unit, prefix};
    };
    add(make(1.0, {}), false, {"", "1", "~", "-", "dimensionless", "fraction", "(0 - 1)"});
    add(make(0.01, {}), false, {"%", "percent"});
    add(make(1.0, {{kMetre, 1}}), true, {"m", "metre", "meter", "metres", "meters", "gpm"});
    add(make(1e-3, {{kKilogram, 1}}), true, {"g", "gram", "grams"});
    add(make(1.0, {{kSecond, 1}}), true, {"s", "sec", "second", "seconds"});
    add(make(60.0, {{kSecond, 1}}), false, {"min", "minute", "minutes"});
    add(make(3600.0, {{kSecond, 1}}), false, {"h", "hr", "hour", "hours"});
    add(make(86400.0, {{kSecond, 1}}), false, {"d", "day", "days"});
    add(make(1.0, {{kKelvin, 1}}), true, {"K", "kelvin", "Kelvin", "degK", "degree_Kelvin"});
    add(make(1.0, {{kKelvin, 1}}, 273.15), false,
        {"degC", "celsius", "Celsius", "degree_Celsius", "degrees_Celsius", "°C", "deg_C"});
    add(make(5.0 / 9.0, {{kKelvin, 1}}, 273.15 - 32.0 * 5.0 / 9.0), false,
        {"degF", "fahrenheit", "Fahrenheit", "degree_Fahrenheit", "°F"});
    add(make(1.0, {{kMole, 1}}), true, {"mol", "mole"});
    add(make(1.0, {{kAmpere, 1}}), true, {"A", "ampere"});
    add(make(1.0, {{kCandela, 1}}), true, {"cd", "candela"});
    add(make(1.0, {{kRadian, 1}}), true, {"rad", "radian", "radians"});
    add(make(std::numbers::pi / 180.0, {{kRadian, 1}}), false,
        {"degree", "degrees", "deg", "degree_north", "degrees_north", "degree_east",
         "degrees_east"});
    add(make(1.0, {{kKilogram, 1}, {kMetre, -1}, {kSecond, -2}}), true, {"Pa", "pascal", "Pascal"});
    add(make(1e5, {{kKilogram, 1}, {kMetre, -1}, {kSecond, -2}}), true, {"bar"});
    add(make(101325.0, {{kKilogram, 1}, {kMetre, -1}, {kSecond, -2}}), false, {"atm"});
    add(make(1.0, {{kKilogram, 1}, {kMetre, 1}, {kSecond, -2}}), true, {"N", "newton"});
    add(make(1.0, {{kKilogram, 1}, {kMetre, 2}, {kSecond, -2}}), true, {"J", "joule"});
    add(make(1.0, {{kKilogram, 1}, {kMetre, 2}, {kSecond, -3}}), true, {"W", "watt"});
    add(make(1.0, {{kSecond, -1}}), true, {"Hz", "hertz"});
    add(make(1e-3, {{kMetre, 3}}), true, {"l", "L", "litre", "liter"});
    add(make(1852.0 / 3600.0, {{kMetre, 1}, {kSecond, -1}}), false, {"kt", "knot", "knots"});
    return units;
  }();
  return kUnits;
}

std::optional<Unit> named_unit(const std::string& name) {
  const auto& units = known_units();
  if (const auto found = units.find(name); found != units.end()) return found->second.unit;
  static const std::map<std::string, double> kPrefixes{
      {"n", 1e-9},     {"u", 1e-6},     {"m", 1e-3},     {"c", 1e-2},    {"d", 1e-1},
      {"da", 1e1},     {"h", 1e2},      {"k", 1e3},      {"M", 1e6},     {"G", 1e9},
      {"micro", 1e-6}, {"milli", 1e-3}, {"centi", 1e-2}, {"deci", 1e-1}, {"hecto", 1e2},
      {"kilo", 1e3},   {"mega", 1e6}};
  for (const auto& [prefix, factor] : kPrefixes) {
    if (!name.starts_with(prefix)) continue;
    const auto found = units.find(name.substr(prefix.size()));
    if (found == units.end() || !found->second.takes_prefix) continue;
    Unit unit = found->second.unit;
    unit.factor *= factor;
    return unit;
  }
  return std::nullopt;
}

bool is_name_character(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '%' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// "m s**-2", "kg/m2", "m2 s^-2", "J.kg-1"
class Product {
 public:
  explicit Product(const std::string& text) : text_(text) {}

  std::optional<Unit> parse() {
    Unit all;
    bool divides = false;
    size_t num_factors = 0;
    while (at_ < text_.size()) {
      if (text_[at_] == '/') {
        divides = true;
        ++at_;
        continue;
      }
      if (is_between_factors()) {
        ++at_;
        continue;
      }
      const size_t begin = at_;
      while (at_ < text_.size() && is_name_character(text_[at_]))
        ++at_;
      std::optional<Unit> unit = named_unit(text_.substr(begin, at_ - begin));
      const bool is_one = at_ == begin && text_[at_] == '1';
      if (is_one) {
        ++at_;
        unit = Unit{};
      }
      if (!unit || (at_ == begin && !is_one)) return std::nullopt;
      const std::optional<int> power = is_one ? std::optional<int>(1) : parse_power();
      if (!power) return std::nullopt;
      const int signed_power = divides ? -*power : *power;
      divides = false;
      for (size_t base = 0; base < all.powers.size(); ++base)
        all.powers[base] += signed_power * unit->powers[base];
      all.factor *= std::pow(unit->factor, signed_power);
      all.offset = unit->offset;
      if (unit->offset != 0.0 && signed_power != 1) return std::nullopt;
      ++num_factors;
    }
    if (num_factors == 0 || divides) return std::nullopt;
    if (num_factors > 1) all.offset = 0.0;  // of differences
    return all;
  }

 private:
  bool is_between_factors() const {
    const char c = text_[at_];
    return c == ' ' || c == '.' || (c == '*' && text_.compare(at_, 2, "**") != 0);
  }

  // Returns what follows a name: "2", "-2", "**2", "^-2"; nothing is 1.
  std::optional<int> parse_power() {
    if (text_.compare(at_, 2, "**") == 0)
      at_ += 2;
    else if (at_ < text_.size() && text_[at_] == '^')
      ++at_;
    else if (at_ == text_.size() ||
             (text_[at_] != '-' && !std::isdigit(static_cast<unsigned char>(text_[at_]))))
      return 1;
    char* end = nullptr;
    const long power = std::strtol(text_.c_str() + at_, &end, 10);
    const auto after = static_cast<size_t>(end - text_.c_str());
    if (after == at_ || power == 0 || power > 9 || power < -9) return std::nullopt;
    at_ = after;
    return static_cast<int>(power);
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<Unit> parse_unit(const std::string& text) {
  if (const auto named = named_unit(text)) return named;
  return Product(text).parse();
}

std::optional<UnitMap> convert_units(const std::string& from, const std::string& to) {
  const auto source = parse_unit(from), target = parse_unit(to);
  if (!source || !target || source->powers != target->powers) return std::nullopt;
  // The reference takes a and b from the values at 0 and 1.
  const auto at = [&](double x) {
    return (x * source->factor + (source->offset - target->offset)) / target->factor;
  };
  const double b = at(0.0);
  return UnitMap{at(1.0) - b, b};
}

}  // namespace aifs::data
