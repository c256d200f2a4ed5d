// SPDX-License-Identifier: Apache-2.0
// Writes small netCDF files for tests.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace aifs::test {

using NetcdfAttributes = std::map<std::string, std::variant<std::string, std::vector<double>>>;

class NetcdfWriter {
 public:
  // `classic`: netCDF 3, else netCDF 4.
  explicit NetcdfWriter(const std::filesystem::path& path, bool classic = false);
  ~NetcdfWriter();
  NetcdfWriter(const NetcdfWriter&) = delete;
  NetcdfWriter& operator=(const NetcdfWriter&) = delete;

  // Length 0: unlimited.
  void dimension(const std::string& name, size_t length);
  // `type`: "f4", "f8", "i2", "i4", "i1". `values` in C order, as they are stored. The fill value
  // must be among the attributes, if there is to be one.
  void variable(const std::string& name, const std::string& type,
                const std::vector<std::string>& dimensions, const NetcdfAttributes& attributes,
                const std::vector<double>& values);

 private:
  int id_ = -1;
  std::map<std::string, std::pair<int, size_t>> dimensions_;
};

// A variable of the coordinate kind: its dimension, and itself.
void write_coordinate(NetcdfWriter& file, const std::string& name, const std::string& units,
                      const std::vector<double>& values, const NetcdfAttributes& more = {});

}  // namespace aifs::test
