// SPDX-License-Identifier: Apache-2.0
#include "data/sources/cf_fields.h"

#include <cmath>
#include <limits>

#include "core/check.h"
#include "core/file_io.h"
#include "core/time.h"
#include "tests/support/catch.h"
#include "tests/support/netcdf_writer.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::data;
using test::NetcdfWriter;

namespace {

using Values = std::vector<double>;

Values counted(size_t count, double first = 0.0) {
  Values values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(first + static_cast<double>(i));
  return values;
}

void write_axes(NetcdfWriter& file, size_t times = 2) {
  write_coordinate(file, "time", "hours since 2020-01-01", counted(times));
  write_coordinate(file, "lat", "degrees_north", {10.0, -10.0});
  write_coordinate(file, "lon", "degrees_east", {0.0, 100.0, 400.0});
}

// All cells of a field at one time.
std::vector<float> field_of(const NetcdfFile& file, const CfFile& cf, const std::string& name,
                            int64_t time = 0, int64_t begin = 0, int64_t end = -1) {
  for (const CfField& field : cf.fields) {
    if (field.name != name) continue;
    if (end < 0) end = static_cast<int64_t>(cf.grid->latitudes_deg.size());
    std::vector<float> out(static_cast<size_t>(field.members * (end - begin)));
    read_cf_field(file, *cf.grid, field, time, {begin, end}, out);
    return out;
  }
  FAIL("no field " << name);
  return {};
}

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

void check_same(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(((a[i] == b[i]) || (std::isnan(a[i]) && std::isnan(b[i]))));
  }
}

}  // namespace

TEST_CASE("fields on latitudes and longitudes, whatever the order of their axes", "[data]") {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "a.nc").string();
  {
    NetcdfWriter file(path, true);
    write_axes(file);
    file.variable("a", "f4", {"time", "lat", "lon"}, {{"units", "K"}}, counted(12));
    file.variable("turned", "f4", {"lon", "time", "lat"}, {}, counted(12));
    file.variable("still", "f8", {"lat", "lon"}, {}, counted(6, 0.5));
    file.variable("series", "f4", {"time"}, {}, counted(2));
  }
  const NetcdfFile file(path);
  const CfFile cf = read_cf_file(file, {});
  REQUIRE(cf.grid);
  CHECK(cf.grid->shape == std::vector<int64_t>{2, 3});
  CHECK(cf.grid->latitudes_deg == Values{10, 10, 10, -10, -10, -10});
  CHECK(cf.grid->longitudes_deg == Values{0, 100, 40, 0, 100, 40});  // 400 goes round
  REQUIRE(cf.fields.size() == 3);
  CHECK(cf.dates_s.at("time") == std::vector<int64_t>{1577836800, 1577840400});
  CHECK(field_of(file, cf, "a", 1) == std::vector<float>{6, 7, 8, 9, 10, 11});
  CHECK(field_of(file, cf, "a", 1, 2, 5) == std::vector<float>{8, 9, 10});
  CHECK(field_of(file, cf, "turned", 1) == std::vector<float>{2, 6, 10, 3, 7, 11});
  CHECK(field_of(file, cf, "turned", 0, 4, 6) == std::vector<float>{5, 9});
  CHECK(field_of(file, cf, "still") == std::vector<float>{0.5, 1.5, 2.5, 3.5, 4.5, 5.5});
  CHECK(cf.fields[2].time_axis == -1);
}

TEST_CASE("cells in a row and two-dimensional coordinates are grids, too", "[data]") {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "a.nc").string();
  {
    NetcdfWriter file(path);
    write_coordinate(file, "time", "days since 2020-01-01", {0.0});
    file.dimension("cell", 3);
    file.variable("clat", "f8", {"cell"}, {{"units", "degrees_north"}}, {1, 2, 3});
    file.variable("clon", "f8", {"cell"}, {{"units", "degrees_east"}}, {-179, -200, 6});
    file.variable("a", "f4", {"time", "cell"}, {{"coordinates", "clon clat"}}, {7, 8, 9});
  }
  const NetcdfFile file(path);
  const CfFile cf = read_cf_file(file, {});
  CHECK(cf.grid->shape == std::vector<int64_t>{3});
  CHECK(cf.grid->longitudes_deg == Values{-179, 160, 6});
  CHECK(field_of(file, cf, "a", 0, 1, 3) == std::vector<float>{8, 9});
  const std::string other = (folder.path() / "b.nc").string();
  {
    NetcdfWriter writer(other);
    write_coordinate(writer, "time", "days since 2020-01-01", {0.0});
    writer.dimension("y", 2);
    writer.dimension("x", 2);
    writer.variable("lat", "f8", {"y", "x"}, {{"units", "degrees_north"}}, {1, 2, 3, 4});
    writer.variable("lon", "f8", {"y", "x"}, {{"units", "degrees_east"}}, {5, 6, 7, 8});
    writer.variable("a", "f4", {"time", "y", "x"}, {}, {1, 2, 3, 4});
  }
  const NetcdfFile second(other);
  const CfFile curved = read_cf_file(second, {});
  CHECK(curved.grid->shape == std::vector<int64_t>{2, 2});
  CHECK(curved.grid->latitudes_deg == Values{1, 2, 3, 4});
  CHECK(field_of(second, curved, "a") == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("levels are parts of names, pressures in hPa, and members stay members", "[data]") {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "a.nc").string();
  {
    NetcdfWriter file(path);
    write_axes(file, 1);
    write_coordinate(file, "plev", "Pa", {85000.0, 50000.0}, {{"positive", "down"}});
    write_coordinate(file, "height", "m", {2.0}, {{"axis", "Z"}});
    write_coordinate(file, "number", "1", {0, 1}, {{"standard_name", "realization"}});
    file.variable("T", "f4", {"time", "plev", "lat", "lon"}, {}, counted(12));
    file.variable("T2", "f4", {"time", "height", "lat", "lon"}, {}, counted(6));
    file.variable("e", "f4", {"number", "time", "lat", "lon"}, {}, counted(12));
  }
  const NetcdfFile file(path);
  const CfFile cf = read_cf_file(file, {{"T", "t"}, {"T2", "2t"}, {"e", "e"}});
  std::vector<std::string> names;
  for (const CfField& field : cf.fields)
    names.push_back(field.name);
  CHECK(names == std::vector<std::string>{"t_850", "t_500", "2t", "e"});
  CHECK(field_of(file, cf, "t_500") == std::vector<float>{6, 7, 8, 9, 10, 11});
  CHECK(field_of(file, cf, "2t") == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(cf.fields.back().members == 2);
  CHECK(field_of(file, cf, "e", 0, 4, 6) == std::vector<float>{4, 5, 10, 11});
}

TEST_CASE("packed and missing values are unpacked as the conventions say", "[data]") {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "a.nc").string();
  {
    NetcdfWriter file(path);
    write_axes(file, 1);
    const auto add = [&](const char* name, const char* type, const test::NetcdfAttributes& how,
                         const Values& values) {
      file.variable(name, type, {"time", "lat", "lon"}, how, values);
    };
    add("packed", "i2",
        {{"scale_factor", Values{0.25}}, {"add_offset", Values{100.0}}, {"_FillValue", Values{-9}}},
        {0, 4, -9, -4, 32767, 1});
    add("old", "f4", {{"missing_value", Values{1e20}}}, {1, 1e20, 2, 3, 4, 5});
    add("ranged", "f4", {{"valid_range", Values{0, 4}}}, {-1, 0, 2, 4, 5, 1});
    add("least", "i4", {{"valid_min", Values{3}}}, {1, 2, 3, 4, 5, 6});
    add("unwritten", "f4", {}, {1, 9.9692099683868690e+36, 3, 4, 5, 6});
  }
  const NetcdfFile file(path);
  const CfFile cf = read_cf_file(file, {});
  check_same(field_of(file, cf, "packed"), {100, 101, kNone, 99, 8291.75f, 100.25f});
  check_same(field_of(file, cf, "old"), {1, kNone, 2, 3, 4, 5});
  check_same(field_of(file, cf, "ranged"), {kNone, 0, 2, 4, kNone, 1});
  check_same(field_of(file, cf, "least"), {kNone, kNone, 3, 4, 5, 6});
  check_same(field_of(file, cf, "unwritten"), {1, kNone, 3, 4, 5, 6});
}

TEST_CASE("what cannot be understood is said with file and variable", "[data]") {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "a.nc").string();
  {
    NetcdfWriter file(path);
    write_axes(file, 1);
    file.dimension("odd", 2);
    write_coordinate(file, "lat2", "degrees_north", {0.0});
    file.variable("odd_field", "f4", {"time", "odd", "lat", "lon"}, {}, counted(12));
    file.variable("other_grid", "f4", {"time", "lat2", "lon"}, {}, counted(3));
    file.variable("a", "f4", {"time", "lat", "lon"}, {}, counted(6));
    file.variable("series", "f4", {"time"}, {}, counted(1));
  }
  const NetcdfFile file(path);
  const auto message = [&](const CfNames& names) -> std::string {
    try {
      read_cf_file(file, names);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(message({{"odd_field", "x"}}), "'odd' of 2");
  has(message({{"series", "x"}}), "'series' lies on no grid");
  has(message({{"a", "a"}, {"other_grid", "b"}}), "another grid");
  has(message({{"a", "a"}, {"other_grid", "b"}}), path);
  CHECK(message({{"a", "a"}}).empty());
}
