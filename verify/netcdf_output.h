// SPDX-License-Identifier: Apache-2.0
// A netCDF-4 file on its way to disk: dimensions and variables first, then values.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/file_io.h"

namespace aifs::verify {

// Every function throws Error naming the file and the variable. The file is written beside `path`
// and gets its name by finish(); without that nothing is left. Thread-safe in that it holds the
// lock of the library.
class NetcdfOutput {
 public:
  using Attributes = std::vector<std::pair<std::string, std::string>>;

  explicit NetcdfOutput(fs::path path);
  ~NetcdfOutput();
  NetcdfOutput(const NetcdfOutput&) = delete;
  NetcdfOutput& operator=(const NetcdfOutput&) = delete;

  void attribute(const std::string& key, const std::string& value);
  void dimension(const std::string& name, size_t length);
  // Fields of fp32, filled with NaN.
  void fields(const std::string& name, const std::vector<std::string>& dimensions,
              const Attributes& attributes = {});
  // A variable of fp64 with all its values in C order; NaN where there is none.
  void numbers(const std::string& name, const std::vector<std::string>& dimensions,
               std::span<const double> values, const Attributes& attributes = {});
  // Texts along one dimension.
  void texts(const std::string& name, const std::string& dimension,
             const std::vector<std::string>& values);
  // Index `first` of the slowest dimension of fields.
  void put(const std::string& name, size_t first, std::span<const float> values);
  void finish();

 private:
  int define(const std::string& name, int type, const std::vector<std::string>& dimensions,
             const Attributes& attributes);
  void check(int status, const std::string& what) const;

  fs::path path_, temporary_;
  int id_ = -1;
};

}  // namespace aifs::verify
