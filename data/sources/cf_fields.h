// SPDX-License-Identifier: Apache-2.0
// What a netCDF file holds by the CF conventions: which variables are fields on a grid, which of
// their axes are time, level, member, latitude and longitude, and how values are packed.
//
// Known grids: latitude x longitude, two-dimensional coordinates, and cells in a row. Coordinates
// are known by units, standard_name, axis or, where there is none of these, by their usual names.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/fields/dataset.h"
#include "data/sources/netcdf_file.h"

namespace aifs::data {

// Says where the cells of a field lie in its variable, and their coordinates.
struct CfGrid {
  std::vector<std::string> dimensions;                // {cells}, or {rows, columns}
  std::vector<int64_t> shape;                         // of these
  std::vector<double> latitudes_deg, longitudes_deg;  // rows one after the other
};

// How stored numbers become values.
struct CfPacking {
  std::optional<double> scale, offset;
  std::vector<double> missing;        // stored numbers that are none
  std::optional<double> least, most;  // stored numbers beyond are none

  bool is_plain() const { return !scale && !offset; }
  // NaN for what is missing.
  double unpack(double stored) const;
};

// A variable, or one level of it.
struct CfField {
  std::string name;  // "t_850"
  NetcdfVariable variable;
  CfPacking packing;
  std::string units;
  int time_axis = -1, member_axis = -1, level_axis = -1;  // of the variable; -1: none
  int64_t level_index = 0;
  std::vector<int> cell_axes;  // of the variable, in the order of CfGrid::dimensions
  int64_t members = 1;
};

struct CfFile {
  std::string path;
  std::optional<CfGrid> grid;                           // none: the file has no fields
  std::map<std::string, std::vector<int64_t>> dates_s;  // by the name of the time dimension
  std::vector<CfField> fields;
};

// Names of variables of files -> names in the dataset; empty: all fields, under their own. Levels
// are appended: "t" becomes "t_850", in hPa where levels are pressures.
using CfNames = std::map<std::string, std::string>;

// Throws DataError naming file and variable for what cannot be understood: two grids, axes that are
// none of the above, levels or times that are no numbers. A variable without a grid is no field; it
// is an error only if `names` names it.
CfFile read_cf_file(const NetcdfFile& file, const CfNames& names);

// Reads some cells of a field, member by member, NaN where they are missing. `time`: index along
// the time axis, if the field has one. `out`: (members, cells.size()).
void read_cf_field(const NetcdfFile& file, const CfGrid& grid, const CfField& field, int64_t time,
                   NodeRange cells, std::span<float> out);

}  // namespace aifs::data
