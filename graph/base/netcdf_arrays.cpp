// SPDX-License-Identifier: Apache-2.0
#include "graph/base/netcdf_arrays.h"

#include <netcdf.h>

#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/check.h"
#include "core/netcdf_lock.h"

namespace aifs::graph {

namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

constexpr int64_t kMostItems = int64_t{1} << 31;

}  // namespace

NetcdfArrays::NetcdfArrays(const fs::path& path) : path_(path.string()) {
  if (!path_exists(path)) throw DataError(concat("there is no file '", path_, "'"));
  const Lock lock(netcdf_mutex());
  check(nc_open(path_.c_str(), NC_NOWRITE, &id_), "");
}

NetcdfArrays::~NetcdfArrays() {
  const Lock lock(netcdf_mutex());
  nc_close(id_);  // nothing was written: its status adds nothing
}

void NetcdfArrays::check(int status, const std::string& what) const {
  if (status == NC_NOERR) return;
  throw DataError(concat("netCDF file '", path_, "'", what.empty() ? "" : ", variable '", what,
                         what.empty() ? "" : "'", ": ", nc_strerror(status)));
}

int NetcdfArrays::variable_id(const std::string& variable) const {
  int id = -1;
  check(nc_inq_varid(id_, variable.c_str(), &id), variable);
  return id;
}

std::vector<int64_t> NetcdfArrays::shape(const std::string& variable) const {
  const Lock lock(netcdf_mutex());
  std::array<int, NC_MAX_VAR_DIMS> dimensions{};
  int count = 0;
  check(
      nc_inq_var(id_, variable_id(variable), nullptr, nullptr, &count, dimensions.data(), nullptr),
      variable);
  std::vector<int64_t> shape;
  int64_t items = 1;
  for (int d = 0; d < count; ++d) {
    size_t length = 0;
    check(nc_inq_dimlen(id_, dimensions[static_cast<size_t>(d)], &length), variable);
    shape.push_back(static_cast<int64_t>(length));
    if (length > 0 && items > kMostItems / static_cast<int64_t>(length)) {
      throw DataError(concat("netCDF file '", path_, "', variable '", variable,
                             "': has more than 2^31 elements"));
    }
    items *= static_cast<int64_t>(length);
  }
  return shape;
}

std::vector<double> NetcdfArrays::numbers(const std::string& variable) const {
  const std::vector<int64_t> dims = shape(variable);
  const int64_t items = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  const Lock lock(netcdf_mutex());
  std::vector<double> values(static_cast<size_t>(items));
  const int id = variable_id(variable);
  check(nc_get_var_double(id_, id, values.data()), variable);
  double fill = 0.0;
  const bool has_fill = nc_get_att_double(id_, id, "_FillValue", &fill) == NC_NOERR;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isnan(values[i]) && !(has_fill && values[i] == fill)) continue;
    throw DataError(
        concat("netCDF file '", path_, "', variable '", variable, "': value ", i, " is missing"));
  }
  return values;
}

std::vector<int32_t> NetcdfArrays::integers(const std::string& variable) const {
  const std::vector<int64_t> dims = shape(variable);
  const int64_t items = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  const Lock lock(netcdf_mutex());
  std::vector<int32_t> values(static_cast<size_t>(items));
  check(nc_get_var_int(id_, variable_id(variable), values.data()), variable);
  return values;
}

std::string NetcdfArrays::units(const std::string& variable) const {
  const Lock lock(netcdf_mutex());
  const int id = variable_id(variable);
  size_t length = 0;
  if (nc_inq_attlen(id_, id, "units", &length) != NC_NOERR) return "";
  std::string text(length, '\0');
  if (nc_get_att_text(id_, id, "units", text.data()) != NC_NOERR) return "";
  return text;
}

}  // namespace aifs::graph
