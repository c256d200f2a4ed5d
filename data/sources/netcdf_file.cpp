// SPDX-License-Identifier: Apache-2.0
// HDF5 takes a lock on every file that it opens, and fails where the file system has none; it is
// told not to before main(), unless the user has chosen (also in graph/graph_file.cpp).
#include "data/sources/netcdf_file.h"

#include <netcdf.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "core/check.h"
#include "core/file_io.h"
#include "core/netcdf_lock.h"

namespace aifs::data {

namespace {

[[maybe_unused]] const int locking_is_off =
    ::setenv("HDF5_USE_FILE_LOCKING", "FALSE", /*overwrite=*/0);

// Returns what a status of the library means; those above 0 are of the system.
std::string reason_of(int status) {
  if (status > 0) return std::strerror(status);
  switch (status) {
    case NC_ENOTNC:
      return "it is not a netCDF file";
    case NC_ETRUNC:
      return "it is shorter than its header says";
    case NC_EHDFERR:
      return "it is damaged, or another program holds it";
    case NC_EFILTER:
    case NC_ENOFILTER:
      return "it is compressed by a filter that is not installed here";
    case NC_EEDGE:
    case NC_EINVALCOORDS:
      return "it ends before these values";
    case NC_ENOMEM:
      return "there is not enough memory";
    default:
      return "it cannot be read";
  }
}

using Lock = std::lock_guard<std::recursive_mutex>;

std::optional<double> default_fill(nc_type type) {
  switch (type) {
    case NC_SHORT:
      return NC_FILL_SHORT;
    case NC_INT:
      return NC_FILL_INT;
    case NC_FLOAT:
      return double{NC_FILL_FLOAT};
    case NC_DOUBLE:
      return NC_FILL_DOUBLE;
    case NC_USHORT:
      return NC_FILL_USHORT;
    case NC_UINT:
      return NC_FILL_UINT;
    default:  // all values of bytes are used
      return std::nullopt;
  }
}

struct Slab {
  std::vector<size_t> start, count;

  Slab(std::span<const int64_t> from, std::span<const int64_t> length)
      : start(from.begin(), from.end()), count(length.begin(), length.end()) {
    if (start.empty()) start.push_back(0), count.push_back(1);  // of a scalar, not looked at
  }
};

}  // namespace

int64_t NetcdfVariable::num_items() const {
  int64_t items = 1;
  for (const int64_t length : shape)
    items *= length;
  return items;
}

NetcdfFile::NetcdfFile(const std::string& path) : path_(path) {
  if (!path_exists(path)) throw DataError(concat("there is no file '", path, "'"));
  check_readable(path);
  const Lock lock(netcdf_mutex());
  check(nc_open(path.c_str(), NC_NOWRITE, &id_), "");
  try {
    int count = 0;
    check(nc_inq_nvars(id_, &count), "");
    for (int id = 0; id < count; ++id)
      read_variable(id);
    check_length();
  } catch (...) {
    nc_close(id_);
    throw;
  }
}

NetcdfFile::~NetcdfFile() {
  const Lock lock(netcdf_mutex());
  nc_close(id_);  // nothing was written: its status adds nothing
}

void NetcdfFile::check(int status, const std::string& what) const {
  if (status == NC_NOERR) return;
  throw DataError(concat("netCDF file '", path_, "'", what.empty() ? "" : ", variable '", what,
                         what.empty() ? "" : "'", ": ", reason_of(status)));
}

void NetcdfFile::read_variable(int id) {
  std::array<char, NC_MAX_NAME + 1> name{};
  std::array<int, NC_MAX_VAR_DIMS> dimensions{};
  int count = 0;
  nc_type type = NC_NAT;
  check(nc_inq_var(id_, id, name.data(), &type, &count, dimensions.data(), nullptr), "");
  NetcdfVariable variable{.name = name.data(), .id = id, .default_fill = default_fill(type)};
  variable.is_number = type >= NC_BYTE && type <= NC_UINT64 && type != NC_CHAR;
  variable.is_float = type == NC_FLOAT;
  constexpr double kMostItems = 0x1p48;
  double items = 1.0;
  for (int axis = 0; axis < count; ++axis) {
    size_t length = 0;
    const int dimension = dimensions[static_cast<size_t>(axis)];
    check(nc_inq_dim(id_, dimension, name.data(), &length), variable.name);
    variable.dimensions.push_back(name.data());
    variable.shape.push_back(static_cast<int64_t>(length));
    items *= static_cast<double>(length);
  }
  if (items > kMostItems)
    throw DataError(concat("netCDF file '", path_, "', variable '", variable.name, "': ", items,
                           " values are more than can be"));
  variables_.push_back(std::move(variable));
}

// Files of netCDF 3 have no checks of their own: what is beyond their end reads as zeros.
void NetcdfFile::check_length() const {
  int format = 0;
  check(nc_inq_format(id_, &format), "");
  if (format == NC_FORMAT_NETCDF4 || format == NC_FORMAT_NETCDF4_CLASSIC) return;
  double needed = 0.0;
  for (const NetcdfVariable& variable : variables_) {
    nc_type type = NC_NAT;
    size_t bytes = 0;
    check(nc_inq_vartype(id_, variable.id, &type), variable.name);
    check(nc_inq_type(id_, type, nullptr, &bytes), variable.name);
    needed += static_cast<double>(bytes) * static_cast<double>(variable.num_items());
  }
  std::error_code error;
  const auto size = static_cast<double>(fs::file_size(path_, error));
  if (!error && size < needed) {
    throw DataError(
        concat("netCDF file '", path_, "' has ", size, " bytes, its variables need ", needed),
        "copy it again");
  }
}

const NetcdfVariable* NetcdfFile::find(const std::string& name) const {
  for (const NetcdfVariable& variable : variables_) {
    if (variable.name == name) return &variable;
  }
  return nullptr;
}

std::string NetcdfFile::text(const NetcdfVariable& variable, const char* attribute) const {
  constexpr size_t kLongest = 1 << 16;
  const Lock lock(netcdf_mutex());
  nc_type type = NC_NAT;
  size_t length = 0;
  if (nc_inq_att(id_, variable.id, attribute, &type, &length) != NC_NOERR) return "";
  if (type == NC_STRING && length == 1) {
    char* words = nullptr;
    check(nc_get_att_string(id_, variable.id, attribute, &words), variable.name);
    std::string text = words ? words : "";
    nc_free_string(1, &words);
    return text;
  }
  if (type != NC_CHAR || length > kLongest) return "";
  std::string text(length, '\0');
  check(nc_get_att_text(id_, variable.id, attribute, text.data()), variable.name);
  return text.substr(0, text.find('\0'));
}

std::vector<double> NetcdfFile::numbers(const NetcdfVariable& variable,
                                        const char* attribute) const {
  constexpr size_t kMost = 1024;
  const Lock lock(netcdf_mutex());
  nc_type type = NC_NAT;
  size_t length = 0;
  if (nc_inq_att(id_, variable.id, attribute, &type, &length) != NC_NOERR) return {};
  if (type == NC_CHAR || type > NC_UINT64 || length > kMost) return {};
  std::vector<double> values(length);
  check(nc_get_att_double(id_, variable.id, attribute, values.data()), variable.name);
  return values;
}

void NetcdfFile::read(const NetcdfVariable& variable, std::span<const int64_t> start,
                      std::span<const int64_t> count, float* out) const {
  const Slab slab(start, count);
  const Lock lock(netcdf_mutex());
  check(nc_get_vara_float(id_, variable.id, slab.start.data(), slab.count.data(), out),
        variable.name);
}

void NetcdfFile::read(const NetcdfVariable& variable, std::span<const int64_t> start,
                      std::span<const int64_t> count, double* out) const {
  const Slab slab(start, count);
  const Lock lock(netcdf_mutex());
  check(nc_get_vara_double(id_, variable.id, slab.start.data(), slab.count.data(), out),
        variable.name);
}

std::vector<double> NetcdfFile::read_all(const NetcdfVariable& variable, int64_t most) const {
  if (!variable.is_number || variable.num_items() > most) {
    throw DataError(concat("netCDF file '", path_, "', variable '", variable.name,
                           variable.is_number ? "': too many values" : "' holds no numbers"));
  }
  std::vector<double> values(static_cast<size_t>(variable.num_items()));
  const std::vector<int64_t> start(variable.shape.size(), 0);
  if (!values.empty()) read(variable, start, variable.shape, values.data());
  return values;
}

}  // namespace aifs::data
