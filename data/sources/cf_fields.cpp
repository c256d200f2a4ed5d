// SPDX-License-Identifier: Apache-2.0
#include "data/sources/cf_fields.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

#include "core/check.h"
#include "core/join.h"
#include "data/sources/cf_time.h"

namespace aifs::data {

namespace {

enum class Axis { kOther, kTime, kLevel, kMember, kLatitude, kLongitude };

bool is_pressure(const std::string& units) {
  return is_one_of(lower_case(units), {"hpa", "pa", "mb", "mbar", "millibar", "millibars", "bar",
                                       "hectopascal", "pascal", "kpa"});
}

// Knows coordinates of one file.
class FieldReader {
 public:
  FieldReader(const NetcdfFile& file, const CfNames& names) : file_(file), names_(names) {}

  CfFile read() {
    CfFile result{.path = file_.path(), .grid = {}, .dates_s = {}, .fields = {}};
    std::set<std::string> found;
    for (const NetcdfVariable& variable : file_.variables()) {
      const bool is_named = names_.contains(variable.name);
      if (!names_.empty() && !is_named) continue;
      if (is_named) found.insert(variable.name);
      if (!add_fields(variable, result) && is_named)
        fail(variable, "lies on no grid of latitudes and longitudes that can be understood");
    }
    return result;
  }

 private:
  [[noreturn]] void fail(const NetcdfVariable& variable, const std::string& why,
                         const std::string& hint = {}) const {
    throw DataError(
        concat("netCDF file '", file_.path(), "', variable '", variable.name, "' ", why), hint);
  }

  Axis axis_of(const NetcdfVariable& variable) const {
    const std::string units = file_.text(variable, "units"), unit = lower_case(units);
    const std::string standard = lower_case(file_.text(variable, "standard_name"));
    const std::string axis = lower_case(file_.text(variable, "axis")),
                      name = lower_case(variable.name);
    if (is_cf_time(units)) return Axis::kTime;
    if (is_one_of(unit, {"degrees_north", "degree_north", "degrees_n", "degree_n", "degreesn",
                         "degreen"}) ||
        standard == "latitude")
      return Axis::kLatitude;
    if (is_one_of(unit, {"degrees_east", "degree_east", "degrees_e", "degree_e", "degreese",
                         "degreee"}) ||
        standard == "longitude")
      return Axis::kLongitude;
    if (standard == "realization") return Axis::kMember;
    if (axis == "z" || standard == "air_pressure" || standard.ends_with("_coordinate") ||
        standard == "model_level_number" || is_pressure(units) ||
        !file_.text(variable, "positive").empty())
      return Axis::kLevel;
    if (is_one_of(name, {"number", "member", "realization", "ensemble"})) return Axis::kMember;
    if (is_one_of(name, {"level", "lev", "plev", "pressure", "pressure_level", "isobaricinhpa"}))
      return Axis::kLevel;
    if (is_one_of(name, {"lat", "latitude", "nav_lat"})) return Axis::kLatitude;
    if (is_one_of(name, {"lon", "longitude", "nav_lon"})) return Axis::kLongitude;
    return Axis::kOther;
  }

  // The coordinate variable of a dimension, if it has one.
  const NetcdfVariable* coordinate(const std::string& dimension) const {
    const NetcdfVariable* variable = file_.find(dimension);
    return variable && variable->dimensions == std::vector<std::string>{dimension} ? variable
                                                                                   : nullptr;
  }

  // The latitudes or longitudes of a variable: those that its attribute names, else any whose
  // dimensions it has.
  const NetcdfVariable* place_of(const NetcdfVariable& variable, Axis axis) const {
    const auto fits = [&](const NetcdfVariable& candidate) {
      return candidate.is_number && !candidate.dimensions.empty() &&
             candidate.dimensions.size() <= 2 && axis_of(candidate) == axis &&
             std::ranges::all_of(candidate.dimensions, [&](const std::string& dimension) {
               return std::ranges::find(variable.dimensions, dimension) !=
                      variable.dimensions.end();
             });
    };
    std::istringstream words(file_.text(variable, "coordinates"));
    for (std::string word; words >> word;) {
      const NetcdfVariable* candidate = file_.find(word);
      if (candidate && fits(*candidate)) return candidate;
    }
    for (const NetcdfVariable& candidate : file_.variables()) {
      if (fits(candidate)) return &candidate;
    }
    return nullptr;
  }

  std::vector<double> checked(const NetcdfVariable& variable, double least, double most) const {
    std::vector<double> values = file_.read_all(variable);
    for (const double value : values) {
      if (!(value >= least && value <= most))
        fail(variable, concat("holds ", value, ", outside [", least, ", ", most, "]"));
    }
    return values;
  }

  // The grid of a variable; nothing if it has none.
  std::optional<CfGrid> grid_of(const NetcdfVariable& variable) const {
    const NetcdfVariable* lat = place_of(variable, Axis::kLatitude);
    const NetcdfVariable* lon = place_of(variable, Axis::kLongitude);
    if (!lat || !lon || lat == &variable || lon == &variable) return std::nullopt;
    CfGrid grid;
    const bool is_product = lat->dimensions.size() == 1 && lon->dimensions.size() == 1 &&
                            lat->dimensions != lon->dimensions;
    if (!is_product && lat->dimensions != lon->dimensions) return std::nullopt;
    constexpr double kMostLongitude = 1080.0;  // axes may go round and round
    const std::vector<double> lats = checked(*lat, -90.0 - 1e-5, 90.0 + 1e-5);
    const std::vector<double> lons = checked(*lon, -kMostLongitude, kMostLongitude);
    if (is_product) {
      grid.dimensions = {lat->dimensions[0], lon->dimensions[0]};
      grid.shape = {lat->shape[0], lon->shape[0]};
      for (const double one : lats) {
        grid.latitudes_deg.insert(grid.latitudes_deg.end(), lons.size(), one);
        grid.longitudes_deg.insert(grid.longitudes_deg.end(), lons.begin(), lons.end());
      }
    } else {
      grid.dimensions = lat->dimensions;
      grid.shape = lat->shape;
      grid.latitudes_deg = lats;
      grid.longitudes_deg = lons;
    }
    for (double& longitude : grid.longitudes_deg) {
      while (longitude >= 360.0)
        longitude -= 360.0;
      while (longitude < -180.0)
        longitude += 360.0;
    }
    return grid;
  }

  CfPacking packing_of(const NetcdfVariable& variable) const {
    CfPacking packing;
    const auto first = [&](const char* attribute) -> std::optional<double> {
      const std::vector<double> values = file_.numbers(variable, attribute);
      if (values.empty()) return std::nullopt;
      return values.front();
    };
    packing.scale = first("scale_factor");
    packing.offset = first("add_offset");
    packing.missing = file_.numbers(variable, "missing_value");
    if (const auto fill = first("_FillValue")) {
      packing.missing.push_back(*fill);
    } else if (variable.default_fill) {
      packing.missing.push_back(*variable.default_fill);
    }
    packing.least = first("valid_min");
    packing.most = first("valid_max");
    const std::vector<double> range = file_.numbers(variable, "valid_range");
    if (range.size() == 2) packing.least = range[0], packing.most = range[1];
    return packing;
  }

  void read_dates(const NetcdfVariable& time, CfFile& result) const {
    const std::string& dimension = time.dimensions.front();
    if (result.dates_s.contains(dimension)) return;
    std::vector<int64_t> dates_s;
    try {
      const CfTime axis(file_.text(time, "units"), file_.text(time, "calendar"));
      for (const double count : file_.read_all(time, 1 << 24))
        dates_s.push_back(axis.to_date(count));
    } catch (const DataError& error) {
      const std::string text = error.what();
      if (text.find(file_.path()) != std::string::npos) throw;
      throw DataError(
          concat("netCDF file '", file_.path(), "', variable '", time.name, "': ", text),
          error.hint());
    }
    result.dates_s[dimension] = std::move(dates_s);
  }

  // "850": hPa where levels are pressures.
  std::vector<std::string> level_names(const NetcdfVariable& levels) const {
    const std::string units = lower_case(file_.text(levels, "units"));
    const double scale = is_one_of(units, {"pa", "pascal"}) ? 0.01
                         : units == "bar"                   ? 1000.0
                         : units == "kpa"                   ? 10.0
                                                            : 1.0;
    std::vector<std::string> names;
    for (const double level : file_.read_all(levels, 1 << 16)) {
      if (!std::isfinite(level)) fail(levels, concat("holds a level that is ", level));
      const double scaled = std::nearbyint(level * scale * 1e6) / 1e6;
      names.push_back(concat(scaled));
      if (std::ranges::count(names, names.back()) > 1)
        fail(levels, concat("has the level ", names.back(), " twice"));
    }
    return names;
  }

  bool add_fields(const NetcdfVariable& variable, CfFile& result) const {
    if (!variable.is_number || coordinate(variable.name)) return false;
    const std::optional<CfGrid> grid = grid_of(variable);
    if (!grid) return false;
    CfField field{.name = {},
                  .variable = variable,
                  .packing = packing_of(variable),
                  .units = file_.text(variable, "units"),
                  .cell_axes = {}};
    const NetcdfVariable* levels = nullptr;
    for (const std::string& dimension : grid->dimensions) {
      const auto at = std::ranges::find(variable.dimensions, dimension);
      field.cell_axes.push_back(static_cast<int>(at - variable.dimensions.begin()));
    }
    for (int axis = 0; axis < static_cast<int>(variable.dimensions.size()); ++axis) {
      if (std::ranges::find(field.cell_axes, axis) != field.cell_axes.end()) continue;
      const std::string& dimension = variable.dimensions[static_cast<size_t>(axis)];
      const int64_t length = variable.shape[static_cast<size_t>(axis)];
      const NetcdfVariable* own = coordinate(dimension);
      const Axis kind = own ? axis_of(*own) : Axis::kOther;
      if (kind == Axis::kTime && field.time_axis < 0) {
        field.time_axis = axis;
        read_dates(*own, result);
      } else if (kind == Axis::kMember && field.member_axis < 0) {
        field.member_axis = axis;
        field.members = length;
      } else if (length == 1 && !(kind == Axis::kLevel && is_pressure(file_.text(*own, "units")))) {
        continue;  // of one height or the like: no part of the name
      } else if (kind == Axis::kLevel && field.level_axis < 0) {
        field.level_axis = axis;
        levels = own;
      } else {
        if (!names_.contains(variable.name)) return false;
        fail(variable, concat("has the dimension '", dimension, "' of ", length,
                              ", which is neither time, level, member nor place"));
      }
    }
    keep_grid(variable, *grid, result);
    const auto name = names_.find(variable.name);
    field.name = name == names_.end() ? variable.name : name->second;
    if (!levels) {
      result.fields.push_back(std::move(field));
      return true;
    }
    const std::string base = field.name;
    const std::vector<std::string> names = level_names(*levels);
    for (size_t level = 0; level < names.size(); ++level) {
      field.level_index = static_cast<int64_t>(level);
      field.name = concat(base, "_", names[level]);
      result.fields.push_back(field);
    }
    return true;
  }

  void keep_grid(const NetcdfVariable& variable, const CfGrid& grid, CfFile& result) const {
    if (!result.grid) result.grid = grid;
    if (result.grid->latitudes_deg == grid.latitudes_deg &&
        result.grid->longitudes_deg == grid.longitudes_deg)
      return;
    fail(variable, "lies on another grid than the variables before it",
         "name the variables of one grid in data.dataset.variables");
  }

  const NetcdfFile& file_;
  const CfNames& names_;
};

// Reads a slab as float, unpacked.
void read_slab(const NetcdfFile& file, const CfField& field, const std::vector<int64_t>& start,
               const std::vector<int64_t>& count, std::vector<float>& out) {
  int64_t items = 1;
  for (const int64_t length : count)
    items *= length;
  out.resize(static_cast<size_t>(items));
  const CfPacking& packing = field.packing;
  if (field.variable.is_float && packing.is_plain()) {
    file.read(field.variable, start, count, out.data());
    for (float& value : out)
      value = static_cast<float>(packing.unpack(static_cast<double>(value)));
    return;
  }
  std::vector<double> stored(out.size());
  file.read(field.variable, start, count, stored.data());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(packing.unpack(stored[i]));
}

}  // namespace

double CfPacking::unpack(double stored) const {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for (const double none : missing) {
    if (stored == none) return kNone;
  }
  if ((least && stored < *least) || (most && stored > *most)) return kNone;
  if (is_plain()) return stored;
  return stored * scale.value_or(1.0) + offset.value_or(0.0);
}

CfFile read_cf_file(const NetcdfFile& file, const CfNames& names) {
  return FieldReader(file, names).read();
}

void read_cf_field(const NetcdfFile& file, const CfGrid& grid, const CfField& field, int64_t time,
                   NodeRange cells, std::span<float> out) {
  const auto [begin, end] = cells;
  const size_t rank = field.variable.shape.size();
  std::vector<int64_t> start(rank, 0), count(rank, 1);
  const auto at = [](int axis) { return static_cast<size_t>(axis); };
  if (field.time_axis >= 0) start[at(field.time_axis)] = time;
  if (field.level_axis >= 0) start[at(field.level_axis)] = field.level_index;
  // Whole rows, of which the first and the last may be wanted in part.
  const bool has_rows = grid.shape.size() == 2;
  const int64_t width = has_rows ? grid.shape[1] : 1;
  const int64_t first = begin / width, last = (end + width - 1) / width;
  start[at(field.cell_axes[0])] = first;
  count[at(field.cell_axes[0])] = last - first;
  if (has_rows) count[at(field.cell_axes[1])] = width;
  const bool is_turned = has_rows && field.cell_axes[1] < field.cell_axes[0];
  std::vector<float> values;
  for (int64_t member = 0; member < field.members; ++member) {
    if (field.member_axis >= 0) start[at(field.member_axis)] = member;
    read_slab(file, field, start, count, values);
    float* to = out.data() + member * (end - begin);
    for (int64_t cell = begin; cell < end; ++cell) {
      const int64_t row = cell / width - first, column = cell % width;
      const int64_t place = is_turned ? column * (last - first) + row : row * width + column;
      to[cell - begin] = values[static_cast<size_t>(place)];
    }
  }
}

}  // namespace aifs::data
