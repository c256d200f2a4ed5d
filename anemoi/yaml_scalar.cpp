// SPDX-License-Identifier: Apache-2.0
#include "anemoi/yaml_scalar.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <string_view>

#include "core/join.h"

namespace aifs::anemoi {

namespace {

using Json = nlohmann::ordered_json;

// No number is longer; the regular expressions below recurse once a character.
constexpr size_t kLongestNumber = 100;

std::optional<double> decimal(std::string_view digits) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range)
    return digits.find("e-") == std::string_view::npos &&
                   digits.find("E-") == std::string_view::npos
               ? std::numeric_limits<double>::infinity()
               : 0.0;
  return value;
}

// Digits of base 60 between colons; the last may have a fraction.
double base_sixty(const std::string& digits) {
  double value = 0.0;
  for (size_t begin = 0; begin <= digits.size();) {
    const size_t end = std::min(digits.find(':', begin), digits.size());
    value = value * 60.0 + decimal(std::string_view(digits).substr(begin, end - begin)).value_or(0);
    begin = end + 1;
  }
  return value;
}

Json signed_integer(const std::string& digits, int base, bool negative) {
  uint64_t magnitude = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  const bool fits = error == std::errc() && end == digits.data() + digits.size() &&
                    magnitude <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!fits) return base == 10 ? Json(decimal(digits).value_or(0.0) * (negative ? -1 : 1)) : Json();
  const auto value = static_cast<int64_t>(magnitude);
  return negative ? -value : value;
}

// A word without sign and underscores.
Json integer(const std::string& digits, bool negative) {
  static const std::regex kSixty("[1-9][0-9]*(:[0-5]?[0-9])+");
  if (digits.starts_with("0b")) return signed_integer(digits.substr(2), 2, negative);
  if (digits.starts_with("0x")) return signed_integer(digits.substr(2), 16, negative);
  if (std::regex_match(digits, kSixty)) {
    const double value = base_sixty(digits);
    if (value < 9e15) return static_cast<int64_t>(value) * (negative ? -1 : 1);
    return value * (negative ? -1 : 1);
  }
  return signed_integer(digits, digits.size() > 1 && digits[0] == '0' ? 8 : 10, negative);
}

Json real(const std::string& digits, bool negative) {
  const std::string lower = lower_case(digits);
  double value = 0.0;
  if (lower == ".inf") {
    value = std::numeric_limits<double>::infinity();
  } else if (lower == ".nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    value =
        digits.find(':') != std::string::npos ? base_sixty(digits) : decimal(digits).value_or(0.0);
  }
  return negative ? -value : value;
}

}  // namespace

Json yaml_scalar(const std::string& word) {
  static const std::regex kInteger(
      "[-+]?(0b[0-1_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*|[1-9][0-9_]*(:[0-5]?[0-9])+)");
  static const std::regex kReal(
      "[-+]?([0-9][0-9_]*\\.[0-9_]*([eE][-+]?[0-9]+)?|[0-9][0-9_]*[eE][-+]?[0-9]+|"
      "\\.[0-9][0-9_]*([eE][-+][0-9]+)?|[0-9][0-9_]*(:[0-5]?[0-9])+\\.[0-9_]*|"
      "\\.(inf|Inf|INF))|\\.(nan|NaN|NAN)");
  if (is_one_of(word, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (is_one_of(word, {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) return true;
  if (is_one_of(word, {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})) {
    return false;
  }
  if (word.size() > kLongestNumber) return word;
  const bool is_integer = std::regex_match(word, kInteger);
  if (!is_integer && !std::regex_match(word, kReal)) return word;
  std::string digits = word;
  const bool negative = digits[0] == '-';
  if (negative || digits[0] == '+') digits.erase(0, 1);
  std::erase(digits, '_');
  const Json value = is_integer ? integer(digits, negative) : real(digits, negative);
  return value.is_null() ? Json(word) : value;
}

}  // namespace aifs::anemoi
