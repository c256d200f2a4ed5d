// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/fill_value.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/check.h"
#include "data/zarr/convert.h"

namespace aifs::zarr {

namespace {

[[noreturn]] void bad_fill(const Json& value, const DataType& type) {
  throw DataError(concat("fill_value ", shown(value), " does not fit dtype ", type.name()));
}

// The float whose bits a text such as "0x7fc00000" gives.
std::optional<double> from_hex(const std::string& text, const DataType& type) {
  if (!text.starts_with("0x") || text.size() != 2 + 2 * static_cast<size_t>(type.item_bytes)) {
    return std::nullopt;
  }
  uint64_t bits = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  std::byte little_endian[sizeof bits];
  std::memcpy(little_endian, &bits, sizeof bits);
  DataType native = type;
  native.big_endian = false;
  double value = 0.0;
  convert_items(native, little_endian, 1, 1, &value);
  return value;
}

double parse_real(const Json& value, const DataType& type) {
  if (value.is_number()) {
    const double number = value.get<double>();
    const double largest = type.item_bytes == 2   ? 65504.0
                           : type.item_bytes == 4 ? double{std::numeric_limits<float>::max()}
                                                  : std::numeric_limits<double>::max();
    if (std::abs(number) > largest) bad_fill(value, type);
    return number;
  }
  if (!value.is_string()) bad_fill(value, type);
  const auto text = value.get<std::string>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  const auto bits = from_hex(text, type);
  if (!bits) bad_fill(value, type);
  return *bits;
}

// True if the type holds the number; booleans, dates and durations take what they are given.
bool fits(int64_t number, const DataType& type) {
  const bool is_signed = type.kind == Kind::kInteger;
  if (!is_signed && type.kind != Kind::kUnsigned) return true;
  if (!is_signed && number < 0) return false;
  const int64_t value_bits = 8 * type.item_bytes - (is_signed ? 1 : 0);
  if (value_bits >= 63) return true;
  const int64_t limit = int64_t{1} << value_bits;
  return number < limit && number >= (is_signed ? -limit : 0);
}

int64_t parse_integer(const Json& value, const DataType& type) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) bad_fill(value, type);
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::trunc(number) == number && std::abs(number) < 0x1p62) {
      return static_cast<int64_t>(number);
    }
  }
  if (type.kind == Kind::kDate || type.kind == Kind::kDuration) {
    if (value.is_string() && value.get<std::string>() == "NaT") return kNotATime;
  }
  bad_fill(value, type);
}

}  // namespace

std::string FillValue::text(const DataType& type) const {
  if (!defined) return "undefined";
  if (type.kind == Kind::kFloat) return std::isnan(real) ? "NaN" : concat(real);
  const bool is_time = type.kind == Kind::kDate || type.kind == Kind::kDuration;
  return is_time && integer == kNotATime ? "not a time" : concat(integer);
}

FillValue parse_fill_value(const Json& value, const DataType& type) {
  FillValue fill;
  if (value.is_null()) {
    fill.defined = false;
  } else if (type.kind == Kind::kFloat) {
    fill.real = parse_real(value, type);
  } else {
    fill.integer = parse_integer(value, type);
    if (!fits(fill.integer, type)) bad_fill(value, type);
    fill.real = static_cast<double>(fill.integer);
  }
  return fill;
}

}  // namespace aifs::zarr
