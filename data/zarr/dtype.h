// SPDX-License-Identifier: Apache-2.0
// Element types of arrays: what the bytes of one item mean.
#pragma once

#include <cstdint>
#include <string>

namespace aifs::zarr {

enum class Kind { kBool, kInteger, kUnsigned, kFloat, kDate, kDuration };

// One count of a date or duration is seconds / parts seconds: hours are {3600, 1}, milliseconds
// {1, 1000}.
struct TimeUnit {
  int64_t seconds = 1;
  int64_t parts = 1;
};

// "Not a time", numpy's NaT.
inline constexpr int64_t kNotATime = INT64_MIN;

struct DataType {
  Kind kind = Kind::kFloat;
  int64_t item_bytes = 4;
  bool big_endian = false;
  TimeUnit unit = {};  // of dates and durations

  // Exactly what a float is in this machine's memory.
  bool is_native_float() const { return kind == Kind::kFloat && item_bytes == 4 && !big_endian; }
  // "float32", "int64", "datetime64".
  std::string name() const;
};

// numpy's notation, as format 2 uses it: "<f4", "|b1", "<M8[s]", "<m8[25us]".
// Throws DataError (without a file name) for text, objects, records, complex numbers and for dates
// counted in months or years.
DataType parse_numpy_type(const std::string& text);

// The names of format 3: "bool", "int8" ... "uint64", "float16" ... "float64", little endian.
DataType parse_type_name(const std::string& name);

// "s", "ms", "h" ... and how many of them one count is.
TimeUnit parse_time_unit(const std::string& name, int64_t multiple);

// A count as whole seconds. kNotATime stays itself. Throws DataError if the count is no whole
// number of seconds, or beyond the years -9999 to 9999.
int64_t to_seconds(const TimeUnit& unit, int64_t count);

}  // namespace aifs::zarr
