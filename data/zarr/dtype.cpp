// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/dtype.h"

#include <array>
#include <bit>
#include <regex>
#include <vector>

#include "core/check.h"

namespace aifs::zarr {

static_assert(std::endian::native == std::endian::little, "big-endian machines are not supported");

namespace {

struct NamedType {
  const char* name;
  char letter;  // of numpy
  Kind kind;
  int64_t item_bytes;
};

constexpr std::array<NamedType, 14> kTypes{{{"bool", 'b', Kind::kBool, 1},
                                            {"int8", 'i', Kind::kInteger, 1},
                                            {"int16", 'i', Kind::kInteger, 2},
                                            {"int32", 'i', Kind::kInteger, 4},
                                            {"int64", 'i', Kind::kInteger, 8},
                                            {"uint8", 'u', Kind::kUnsigned, 1},
                                            {"uint16", 'u', Kind::kUnsigned, 2},
                                            {"uint32", 'u', Kind::kUnsigned, 4},
                                            {"uint64", 'u', Kind::kUnsigned, 8},
                                            {"float16", 'f', Kind::kFloat, 2},
                                            {"float32", 'f', Kind::kFloat, 4},
                                            {"float64", 'f', Kind::kFloat, 8},
                                            {"datetime64", 'M', Kind::kDate, 8},
                                            {"timedelta64", 'm', Kind::kDuration, 8}}};

struct NamedUnit {
  const char* name;
  TimeUnit unit;
};

constexpr std::array<NamedUnit, 11> kUnits{{{"W", {604800, 1}},
                                            {"D", {86400, 1}},
                                            {"h", {3600, 1}},
                                            {"m", {60, 1}},
                                            {"s", {1, 1}},
                                            {"ms", {1, 1000}},
                                            {"us", {1, 1000000}},
                                            {"μs", {1, 1000000}},
                                            {"ns", {1, 1000000000}},
                                            {"ps", {1, 1000000000000}},
                                            {"fs", {1, 1000000000000000}}}};

constexpr int64_t kMaxUnitMultiple = 1'000'000'000;
constexpr int64_t kMaxSeconds = int64_t{10000} * 366 * 86400;

// std::regex recurses once per character: a long text would end the stack.
constexpr size_t kLongestName = 64;

std::string shortened(const std::string& text) {
  return text.size() <= kLongestName ? text : concat(text.substr(0, kLongestName), "...");
}

[[noreturn]] void unsupported_type(const std::string& text) {
  throw DataError(concat("dtype '", shortened(text), "' is not supported"),
                  "booleans, integers, floats, dates and durations are");
}

bool is_time(Kind kind) {
  return kind == Kind::kDate || kind == Kind::kDuration;
}

}  // namespace

std::string DataType::name() const {
  for (const NamedType& type : kTypes) {
    if (type.kind == kind && type.item_bytes == item_bytes) return type.name;
  }
  return "?";
}

DataType parse_numpy_type(const std::string& text) {
  static const std::regex kPattern(R"(([<>|])([a-zA-Z])(\d{1,4})(?:\[(\d{0,9})([^\]\d]+)\])?)");
  std::smatch match;
  if (text.size() > kLongestName || !std::regex_match(text, match, kPattern))
    unsupported_type(text);
  const int64_t item_bytes = std::stoll(match[3]);
  for (const NamedType& type : kTypes) {
    if (match[2].str()[0] != type.letter || item_bytes != type.item_bytes) continue;
    DataType result{type.kind, item_bytes, match[1] == ">", {}};
    if (is_time(type.kind) != match[4].matched) unsupported_type(text);
    if (is_time(type.kind)) {
      const std::string multiple = match[4];
      result.unit = parse_time_unit(match[5], multiple.empty() ? 1 : std::stoll(multiple));
    }
    return result;
  }
  unsupported_type(text);
}

DataType parse_type_name(const std::string& name) {
  for (const NamedType& type : kTypes) {
    if (name == type.name && !is_time(type.kind)) return {type.kind, type.item_bytes, false, {}};
  }
  unsupported_type(name);
}

TimeUnit parse_time_unit(const std::string& name, int64_t multiple) {
  if (multiple < 1 || multiple > kMaxUnitMultiple) {
    throw DataError(
        concat("a time unit of ", multiple, " '", shortened(name), "' is not supported"));
  }
  std::vector<std::string> known;
  for (const auto& [unit_name, unit] : kUnits) {
    if (name == unit_name) return {unit.seconds * multiple, unit.parts};
    known.emplace_back(unit_name);
  }
  throw DataError(concat("time unit '", shortened(name), "' is not supported"),
                  nearest_names(shortened(name), known));
}

int64_t to_seconds(const TimeUnit& unit, int64_t count) {
  if (count == kNotATime) return kNotATime;
  const __int128 scaled = static_cast<__int128>(count) * unit.seconds;
  const __int128 seconds = scaled / unit.parts;
  if (scaled % unit.parts != 0) {
    throw DataError(concat("the time ", count, " is not a whole number of seconds"));
  }
  if (seconds > kMaxSeconds || seconds < -kMaxSeconds) {
    throw DataError(concat("the time ", count, " is out of range"));
  }
  return static_cast<int64_t>(seconds);
}

}  // namespace aifs::zarr
