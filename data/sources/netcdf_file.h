// SPDX-License-Identifier: Apache-2.0
// A netCDF file open for reading: its variables, their attributes and slabs of their values. The
// library may only be called by one thread at a time (core/netcdf_lock.h); every function here
// holds that lock itself, so all may be called by several threads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace aifs::data {

struct NetcdfVariable {
  std::string name;
  int id = -1;
  bool is_number = true;                     // else text or a type of its own
  bool is_float = false;                     // fp32
  std::optional<double> default_fill;        // what the library puts where nothing was written
  std::vector<std::string> dimensions = {};  // slowest first
  std::vector<int64_t> shape = {};

  int64_t num_items() const;
};

// Reads the root group. Errors are DataErrors that name the file and the variable.
class NetcdfFile {
 public:
  explicit NetcdfFile(const std::string& path);
  ~NetcdfFile();
  NetcdfFile(const NetcdfFile&) = delete;
  NetcdfFile& operator=(const NetcdfFile&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<NetcdfVariable>& variables() const { return variables_; }
  const NetcdfVariable* find(const std::string& name) const;

  // A text attribute, or "".
  std::string text(const NetcdfVariable& variable, const char* attribute) const;
  // The numbers of an attribute; empty if there is none, or it is a text.
  std::vector<double> numbers(const NetcdfVariable& variable, const char* attribute) const;

  // A slab as it is stored, in C order.
  void read(const NetcdfVariable& variable, std::span<const int64_t> start,
            std::span<const int64_t> count, float* out) const;
  void read(const NetcdfVariable& variable, std::span<const int64_t> start,
            std::span<const int64_t> count, double* out) const;
  // All of a coordinate. Throws DataError if it has more than `most` values.
  std::vector<double> read_all(const NetcdfVariable& variable, int64_t most = 1 << 28) const;

 private:
  void check(int status, const std::string& what) const;
  void read_variable(int id);
  void check_length() const;

  std::string path_;
  int id_ = -1;
  std::vector<NetcdfVariable> variables_;
};

}  // namespace aifs::data
