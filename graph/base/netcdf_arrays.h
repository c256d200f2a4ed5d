// SPDX-License-Identifier: Apache-2.0
// Whole variables of a netCDF file of others: coordinates and index arrays of a mesh.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/file_io.h"

namespace aifs::graph {

// Throws DataError naming file and variable for what is not there or cannot be read. One thread at
// a time uses the library; the class waits for it.
class NetcdfArrays {
 public:
  explicit NetcdfArrays(const fs::path& path);
  ~NetcdfArrays();
  NetcdfArrays(const NetcdfArrays&) = delete;
  NetcdfArrays& operator=(const NetcdfArrays&) = delete;

  // Elements in C order. Missing values (the variable's _FillValue) and NaN are a DataError.
  std::vector<double> numbers(const std::string& variable) const;
  std::vector<int32_t> integers(const std::string& variable) const;
  std::vector<int64_t> shape(const std::string& variable) const;
  // The attribute "units"; empty if there is none.
  std::string units(const std::string& variable) const;

 private:
  int variable_id(const std::string& variable) const;
  void check(int status, const std::string& what) const;

  std::string path_;
  int id_ = -1;
};

}  // namespace aifs::graph
