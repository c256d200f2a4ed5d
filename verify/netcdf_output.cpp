// SPDX-License-Identifier: Apache-2.0
#include "verify/netcdf_output.h"

#include <netcdf.h>

#include <cmath>
#include <limits>
#include <mutex>

#include "core/check.h"
#include "core/netcdf_lock.h"

namespace aifs::verify {

NetcdfOutput::NetcdfOutput(fs::path path)
    : path_(std::move(path)), temporary_(temporary_name(path_)) {
  const std::lock_guard lock(netcdf_mutex());
  check(nc_create(temporary_.c_str(), NC_NETCDF4 | NC_CLOBBER, &id_), "it cannot be created");
}

NetcdfOutput::~NetcdfOutput() {
  if (id_ < 0) return;
  const std::lock_guard lock(netcdf_mutex());
  nc_close(id_);  // its status adds nothing
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

void NetcdfOutput::check(int status, const std::string& what) const {
  if (status == NC_NOERR) return;
  throw Error(concat("netCDF file '", path_.string(), "': ", what, ": ", nc_strerror(status)),
              "is the disk full, or the folder not writable?");
}

void NetcdfOutput::attribute(const std::string& key, const std::string& value) {
  const std::lock_guard lock(netcdf_mutex());
  check(nc_put_att_text(id_, NC_GLOBAL, key.c_str(), value.size(), value.c_str()), key);
}

void NetcdfOutput::dimension(const std::string& name, size_t length) {
  const std::lock_guard lock(netcdf_mutex());
  int dimension = -1;
  check(nc_def_dim(id_, name.c_str(), length, &dimension), concat("dimension '", name, "'"));
}

int NetcdfOutput::define(const std::string& name, int type,
                         const std::vector<std::string>& dimensions, const Attributes& attributes) {
  std::vector<int> ids;
  for (const std::string& dimension : dimensions) {
    int id = -1;
    check(nc_inq_dimid(id_, dimension.c_str(), &id), concat("dimension '", dimension, "'"));
    ids.push_back(id);
  }
  int variable = -1;
  check(nc_def_var(id_, name.c_str(), type, static_cast<int>(ids.size()), ids.data(), &variable),
        concat("variable '", name, "'"));
  for (const auto& [key, value] : attributes)
    check(nc_put_att_text(id_, variable, key.c_str(), value.size(), value.c_str()),
          concat("variable '", name, "'"));
  return variable;
}

void NetcdfOutput::fields(const std::string& name, const std::vector<std::string>& dimensions,
                          const Attributes& attributes) {
  const std::lock_guard lock(netcdf_mutex());
  const int variable = define(name, NC_FLOAT, dimensions, attributes);
  const float fill = std::numeric_limits<float>::quiet_NaN();
  check(nc_def_var_fill(id_, variable, NC_FILL, &fill), concat("variable '", name, "'"));
}

void NetcdfOutput::numbers(const std::string& name, const std::vector<std::string>& dimensions,
                           std::span<const double> values, const Attributes& attributes) {
  const std::lock_guard lock(netcdf_mutex());
  const int variable = define(name, NC_DOUBLE, dimensions, attributes);
  const double fill = NAN;
  check(nc_def_var_fill(id_, variable, NC_FILL, &fill), concat("variable '", name, "'"));
  check(nc_put_var_double(id_, variable, values.data()), concat("variable '", name, "'"));
}

void NetcdfOutput::texts(const std::string& name, const std::string& dimension,
                         const std::vector<std::string>& values) {
  const std::lock_guard lock(netcdf_mutex());
  const int variable = define(name, NC_STRING, {dimension}, {});
  std::vector<const char*> texts;
  for (const std::string& value : values)
    texts.push_back(value.c_str());
  check(nc_put_var_string(id_, variable, texts.data()), concat("variable '", name, "'"));
}

void NetcdfOutput::put(const std::string& name, size_t first, std::span<const float> values) {
  const std::lock_guard lock(netcdf_mutex());
  const std::string what = concat("variable '", name, "'");
  int variable = -1, rank = 0;
  check(nc_inq_varid(id_, name.c_str(), &variable), what);
  check(nc_inq_varndims(id_, variable, &rank), what);
  std::vector<int> dimensions(static_cast<size_t>(rank));
  check(nc_inq_vardimid(id_, variable, dimensions.data()), what);
  std::vector<size_t> start(dimensions.size(), 0), count(dimensions.size(), 1);
  size_t items = 1;
  for (size_t d = 1; d < dimensions.size(); ++d) {
    check(nc_inq_dimlen(id_, dimensions[d], &count[d]), what);
    items *= count[d];
  }
  AIFS_CHECK(items == values.size(), "'", name, "' has other dimensions");
  start[0] = first;
  check(nc_put_vara_float(id_, variable, start.data(), count.data(), values.data()), what);
}

void NetcdfOutput::finish() {
  const std::lock_guard lock(netcdf_mutex());
  const int id = std::exchange(id_, -1);
  const int status = nc_close(id);
  std::error_code ignored;
  if (status != NC_NOERR) fs::remove(temporary_, ignored);
  check(status, "its last values");
  sync_to_disk(temporary_);
  replace_file(temporary_, path_);
}

}  // namespace aifs::verify
