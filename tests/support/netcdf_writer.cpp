// SPDX-License-Identifier: Apache-2.0
#include "tests/support/netcdf_writer.h"

#include <netcdf.h>

#include "core/check.h"

namespace aifs::test {

namespace {

void check(int status, const std::string& what) {
  AIFS_CHECK(status == NC_NOERR, what, ": ", nc_strerror(status));
}

nc_type type_of(const std::string& name) {
  if (name == "f4") return NC_FLOAT;
  if (name == "f8") return NC_DOUBLE;
  if (name == "i1") return NC_BYTE;
  if (name == "i2") return NC_SHORT;
  AIFS_CHECK(name == "i4", name);
  return NC_INT;
}

}  // namespace

NetcdfWriter::NetcdfWriter(const std::filesystem::path& path, bool classic) {
  check(nc_create(path.c_str(), NC_CLOBBER | (classic ? 0 : NC_NETCDF4), &id_), path.string());
  check(nc_enddef(id_), "enddef");
}

NetcdfWriter::~NetcdfWriter() {
  nc_close(id_);
}

void NetcdfWriter::dimension(const std::string& name, size_t length) {
  int dim = -1;
  check(nc_redef(id_), name);
  check(nc_def_dim(id_, name.c_str(), length, &dim), name);
  check(nc_enddef(id_), name);
  dimensions_[name] = {dim, length};
}

void NetcdfWriter::variable(const std::string& name, const std::string& type,
                            const std::vector<std::string>& dimensions,
                            const NetcdfAttributes& attributes, const std::vector<double>& values) {
  std::vector<int> dims;
  std::vector<size_t> start(dimensions.size(), 0), count;
  size_t known = 1, unlimited = dimensions.size();
  for (size_t axis = 0; axis < dimensions.size(); ++axis) {
    const auto [dim, length] = dimensions_.at(dimensions[axis]);
    dims.push_back(dim);
    count.push_back(length);
    if (length == 0) unlimited = axis;
    known *= length == 0 ? 1 : length;
  }
  if (unlimited < count.size()) count[unlimited] = values.size() / known;
  int var = -1;
  check(nc_redef(id_), name);
  check(nc_def_var(id_, name.c_str(), type_of(type), static_cast<int>(dims.size()), dims.data(),
                   &var),
        name);
  for (const auto& [key, value] : attributes) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      check(nc_put_att_text(id_, var, key.c_str(), text->size(), text->c_str()), key);
    } else {
      const auto& numbers = std::get<std::vector<double>>(value);
      const bool is_fill = key == "_FillValue" || key == "missing_value";
      check(nc_put_att_double(id_, var, key.c_str(), is_fill ? type_of(type) : NC_DOUBLE,
                              numbers.size(), numbers.data()),
            key);
    }
  }
  check(nc_enddef(id_), name);
  if (!values.empty())
    check(nc_put_vara_double(id_, var, start.data(), count.data(), values.data()), name);
}

void write_coordinate(NetcdfWriter& file, const std::string& name, const std::string& units,
                      const std::vector<double>& values, const NetcdfAttributes& more) {
  NetcdfAttributes attributes = more;
  if (!units.empty()) attributes["units"] = units;
  file.dimension(name, values.size());
  file.variable(name, "f8", {name}, attributes, values);
}

}  // namespace aifs::test
