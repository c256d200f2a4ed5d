// SPDX-License-Identifier: Apache-2.0
#include "data/sources/netcdf_dataset.h"

#include <cmath>

#include "core/check.h"
#include "core/file_io.h"
#include "core/time.h"
#include "data/sources/computed_forcings.h"
#include "tests/support/catch.h"
#include "tests/support/netcdf_writer.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::data;
using test::NetcdfWriter;

namespace {

using Values = std::vector<double>;
constexpr size_t kRows = 2, kColumns = 4, kCells = kRows * kColumns;

// Returns what a field holds at an hour of 2020.
double value(int field, double hour, size_t cell) {
  return 100.0 * field + 10.0 * hour + static_cast<double>(cell);
}

struct FileSpec {
  std::string name;
  Values hours;
  std::vector<std::string> fields{"u", "v"};
  double first_longitude = 0.0;
};

std::string write_file(const fs::path& folder, const FileSpec& spec) {
  const fs::path path = folder / spec.name;
  NetcdfWriter file(path, true);
  write_coordinate(file, "time", "hours since 2020-01-01", spec.hours);
  write_coordinate(file, "lat", "degrees_north", {10.0, -10.0});
  Values lons;
  for (size_t i = 0; i < kColumns; ++i)
    lons.push_back(spec.first_longitude + 90.0 * static_cast<double>(i));
  write_coordinate(file, "lon", "degrees_east", lons);
  for (const std::string& field : spec.fields) {
    Values values;
    for (const double hour : spec.hours)
      for (size_t cell = 0; cell < kCells; ++cell)
        values.push_back(value(field[0], hour, cell));
    file.variable(field, "f4", {"time", "lat", "lon"}, {}, values);
  }
  return path.string();
}

DatasetOptions options_of(std::vector<std::string> files) {
  DatasetOptions options;
  options.netcdf.files = std::move(files);
  return options;
}

std::vector<float> row_of(const Dataset& dataset, int64_t row) {
  const DatasetInfo& info = dataset.info();
  std::vector<float> out(static_cast<size_t>(info.num_nodes() * info.num_variables()));
  dataset.read(row, {0, info.num_nodes()}, out);
  return out;
}

template <class Error>
std::string message(const DatasetOptions& options) {
  try {
    const NetcdfDataset dataset(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("files in time and files of variables are one dataset, each value in its place",
          "[data]") {
  const test::TemporaryFolder folder;
  write_file(folder.path(), {"w_1.nc", {0, 6, 12}});
  write_file(folder.path(), {"w_2.nc", {18, 24}});
  write_file(folder.path(), {"t.nc", {0, 6, 12, 18, 24}, {"t"}});
  DatasetOptions options =
      options_of({(folder.path() / "w_*.nc").string(), (folder.path() / "t.nc").string()});
  options.netcdf.variables = {{"u", "10u"}, {"v", "10v"}, {"t", "2t"}};
  options.netcdf.forcings = {"cos_latitude", "sin_julian_day"};
  const NetcdfDataset dataset(options);
  const DatasetInfo& info = dataset.info();
  CHECK(info.variables ==
        std::vector<std::string>{"10u", "10v", "2t", "cos_latitude", "sin_julian_day"});
  CHECK(info.frequency_s == 21600);
  REQUIRE(info.num_rows() == 5);
  CHECK(info.missing_rows.empty());
  CHECK(info.field_shape == std::vector<int64_t>{2, 4});
  CHECK(info.constant_fields == std::vector<std::string>{"cos_latitude"});
  for (int64_t row = 0; row < 5; ++row) {
    const std::vector<float> out = row_of(dataset, row);
    for (size_t cell = 0; cell < kCells; ++cell) {
      const double hour = 6.0 * static_cast<double>(row);
      CHECK(static_cast<double>(out[cell * 5]) == value('u', hour, cell));
      CHECK(static_cast<double>(out[cell * 5 + 1]) == value('v', hour, cell));
      CHECK(static_cast<double>(out[cell * 5 + 2]) == value('t', hour, cell));
      CHECK(out[cell * 5 + 3] == Approx(std::cos(10.0 * 3.14159265358979 / 180.0)));
    }
  }
  std::vector<float> part(2 * 5);
  dataset.read(3, {5, 7}, part);
  CHECK(static_cast<double>(part[0]) == value('u', 18, 5));
  CHECK(static_cast<double>(part[6]) == value('v', 18, 6));
}

TEST_CASE("dates that some field lacks are missing", "[data]") {
  const test::TemporaryFolder folder;
  const std::string a = write_file(folder.path(), {"a.nc", {0, 6, 18, 24, 30}});
  const std::string b = write_file(folder.path(), {"b.nc", {0, 6, 12, 18, 30}, {"t"}});
  const NetcdfDataset dataset(options_of({a, b}));
  CHECK(dataset.info().num_rows() == 6);
  CHECK(dataset.info().missing_rows == std::vector<int64_t>{2, 4});
  CHECK_THROWS_AS(row_of(dataset, 2), DataError);
  CHECK(static_cast<double>(row_of(dataset, 5)[0]) == value('t', 30, 0));
}

TEST_CASE("statistics are computed once and kept for these files only", "[data]") {
  const test::TemporaryFolder folder;
  const std::string a = write_file(folder.path(), {"a.nc", {0, 6, 12, 18}});
  DatasetOptions options = options_of({a});
  options.netcdf.statistics_end = "2020-01-01T12:00";
  options.netcdf.statistics_dir = (folder.path() / "kept").string();
  const auto files = [&] {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder.path() / "kept"))
      found.push_back(entry.path());
    return found;
  };
  const NetcdfDataset first(options);
  const Statistics& s = first.info().statistics;
  // Three dates, eight cells: hours 0, 6 and 12 give 0, 60, 120 beside the number of the cell.
  CHECK(s.mean[0] == Approx(value('u', 6, 0) + 3.5));
  CHECK(s.stdev[0] == Approx(std::sqrt((3600.0 + 3600.0) / 3.0 + 63.0 / 12.0)));
  CHECK(s.minimum[0] == value('u', 0, 0));
  CHECK(s.maximum[0] == value('u', 12, 7));
  CHECK(first.info().tendencies.at(21600).mean[0] == 60.0);
  CHECK(first.info().tendencies.at(21600).stdev[0] == 0.0);
  REQUIRE(files().size() == 1);
  std::string text = read_file(files()[0]);
  const std::string minimum = "\"minimum\": [";
  text.replace(text.find(minimum), minimum.size(), minimum + "\n   12345.0, 1.0], \"x\": [");
  write_file_atomic(files()[0], text);
  CHECK(NetcdfDataset(options).info().statistics.minimum[0] == 12345.0);  // from the file
  write_file_atomic(files()[0], "{}");
  CHECK(NetcdfDataset(options).info().statistics.minimum[0] == s.minimum[0]);  // anew
  write_file(folder.path(), {"a.nc", {0, 6, 12, 18, 24}});                     // another file
  const NetcdfDataset changed(options);
  CHECK(files().size() == 2);
}

TEST_CASE("a part is selected as of any dataset, with statistics of the whole", "[data]") {
  const test::TemporaryFolder folder;
  const std::string a = write_file(folder.path(), {"a.nc", {0, 6, 12, 18, 24, 30, 36}});
  DatasetOptions options = options_of({a});
  const DatasetInfo all = NetcdfDataset(options).info();
  options.select = {"v"};
  options.start = "2020-01-01T06:00";
  options.frequency = "12h";
  const NetcdfDataset part(options);
  CHECK(part.info().variables == std::vector<std::string>{"v"});
  CHECK(part.info().num_rows() == 3);
  CHECK(part.info().frequency_s == 43200);
  CHECK(part.info().statistics.mean == Values{all.statistics.mean[1]});
  CHECK(static_cast<double>(row_of(part, 1)[2]) == value('v', 18, 2));
}

TEST_CASE("rows of longitudes are turned to begin at 0 if asked", "[data]") {
  const test::TemporaryFolder folder;
  FileSpec spec{"a.nc", {0, 6}};
  spec.first_longitude = 200.0;  // 200, 290, 380, 470
  DatasetOptions options = options_of({write_file(folder.path(), spec)});
  CHECK(NetcdfDataset(options).info().longitudes_deg[2] == 20.0);
  options.netcdf.longitudes_from_zero = true;
  const NetcdfDataset dataset(options);
  CHECK(dataset.info().longitudes_deg == Values{20, 110, 200, 290, 20, 110, 200, 290});
  const std::vector<float> out = row_of(dataset, 0);
  for (const auto& [cell, from] : {std::pair{0, 2}, {1, 3}, {2, 0}, {3, 1}, {4, 6}, {7, 5}})
    CHECK(static_cast<double>(out[static_cast<size_t>(cell) * 2]) ==
          value('u', 0, static_cast<size_t>(from)));
  std::vector<float> part(2);
  dataset.read(1, {6, 7}, part);
  CHECK(static_cast<double>(part[1]) == value('v', 6, 4));
}

TEST_CASE("options and files that do not fit are refused, by name", "[data]") {
  const test::TemporaryFolder folder;
  const std::string a = write_file(folder.path(), {"a.nc", {0, 6}});
  const std::string twice = write_file(folder.path(), {"twice.nc", {6, 12}});
  FileSpec shifted{"shifted.nc", {12, 18}};
  shifted.first_longitude = 1.0;
  const std::string other = write_file(folder.path(), shifted);
  const std::string odd = write_file(folder.path(), {"odd.nc", {0, 6, 13}});
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  DatasetOptions options = options_of({a});
  options.netcdf.forcings = {"orography"};
  has(message<ConfigError>(options), "data.dataset.forcings");
  options = options_of({a});
  options.netcdf.variables = {{"w", "w"}};
  has(message<ConfigError>(options), "data.dataset.variables");
  has(message<ConfigError>(options_of({(folder.path() / "no*.nc").string()})), "no*.nc");
  has(message<DataError>(options_of({(folder.path() / "none.nc").string()})), "none.nc");
  has(message<DataError>(options_of({a, twice})), "2020-01-01T06:00:00");
  has(message<DataError>(options_of({a, twice})), "twice.nc");
  has(message<DataError>(options_of({a, other})), "another grid");
  has(message<DataError>(options_of({odd})), "odd.nc");
}
