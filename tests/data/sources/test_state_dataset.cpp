// SPDX-License-Identifier: Apache-2.0
#include "data/sources/state_dataset.h"

#include "core/check.h"
#include "core/file_io.h"
#include "core/time.h"
#include "data/sources/analytic_dataset.h"
#include "tests/support/catch.h"
#include "tests/support/netcdf_writer.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::data;

namespace {

const std::vector<double> kLatitudes{-80.0, -10.0, 35.0, 70.0},
    kLongitudes{0.0, 95.0, 180.0, 300.0};

// Ten days of waves at four places.
std::shared_ptr<const AnalyticDataset> waves() {
  AnalyticOptions options;
  options.start = "2020-01-01";
  options.end = "2020-01-10";
  options.max_degree = 4;
  return std::make_shared<AnalyticDataset>(options, kLatitudes, kLongitudes);
}

struct FileSpec {
  std::vector<std::string> variables;
  std::vector<double> hours{0.0, 6.0};  // since 2020-03-01
  std::vector<double> latitudes = kLatitudes, longitudes = kLongitudes;
};

// Values are 1000 * variable + 100 * time + cell.
void write_states(const fs::path& path, const FileSpec& spec) {
  test::NetcdfWriter file(path);
  test::write_coordinate(file, "time", "hours since 2020-03-01 00:00:00", spec.hours);
  file.dimension("cell", spec.latitudes.size());
  file.variable("latitude", "f8", {"cell"}, {{"units", "degrees_north"}}, spec.latitudes);
  file.variable("longitude", "f8", {"cell"}, {{"units", "degrees_east"}}, spec.longitudes);
  for (size_t v = 0; v < spec.variables.size(); ++v) {
    std::vector<double> values;
    for (size_t t = 0; t < spec.hours.size(); ++t)
      for (size_t i = 0; i < spec.latitudes.size(); ++i)
        values.push_back(static_cast<double>(1000 * v + 100 * t + i));
    file.variable(spec.variables[v], "f4", {"time", "cell"},
                  {{"coordinates", "latitude longitude"}}, values);
  }
}

std::vector<int64_t> all_columns(const Dataset& dataset) {
  std::vector<int64_t> columns;
  for (int64_t c = 0; c < dataset.info().num_variables(); ++c)
    columns.push_back(c);
  return columns;
}

StateDataset states_of(const std::vector<fs::path>& paths) {
  std::vector<std::unique_ptr<StateFile>> files;
  for (const fs::path& path : paths)
    files.push_back(open_state_file(path.string(), "--states"));
  const auto dataset = waves();
  return StateDataset(dataset, std::move(files), all_columns(*dataset));
}

// Variables of the waves that are not computed from place and date.
std::vector<std::string> fields() {
  const auto dataset = waves();
  std::vector<std::string> names;
  for (const std::string& name : dataset->info().variables)
    if (name.find('_') != std::string::npos && name.find("sin_") != 0 && name.find("cos_") != 0)
      names.push_back(name);
  return names;
}

std::string error_of(const std::vector<fs::path>& paths, const char* date = nullptr) {
  try {
    const StateDataset states = states_of(paths);
    if (date) states.require_state(parse_date(date));
  } catch (const DataError& error) {
    return concat(error.what(), " | ", error.hint());
  }
  return "";
}

}  // namespace

TEST_CASE("states come from files, dates of the dataset from there", "[state_dataset]") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> names = fields();
  REQUIRE(names.size() >= 4);
  write_states(folder.path() / "a.nc", {{names.begin(), names.begin() + 2}});
  write_states(folder.path() / "b.nc", {{names.begin() + 2, names.end()}});
  const StateDataset states = states_of({folder.path() / "a.nc", folder.path() / "b.nc"});
  const DatasetInfo& info = states.info();
  REQUIRE(states.file_dates().size() == 2);
  REQUIRE(info.dates_s.front() == parse_date("2020-01-01"));
  REQUIRE(info.dates_s.back() == parse_date("2020-03-01T06"));
  states.require_state(parse_date("2020-03-01T06"));
  const auto width = static_cast<size_t>(info.num_variables());
  std::vector<float> row(3 * width), below(3 * width);
  states.read(info.num_rows() - 1, {1, 4}, row);
  for (size_t v = 0; v < names.size(); ++v) {
    const auto column = static_cast<size_t>(info.column(names[v]));
    const size_t in_file = v < 2 ? v : v - 2;
    for (size_t i = 0; i < 3; ++i)
      REQUIRE(row[i * width + column] == static_cast<float>(1000 * in_file + 100 + i + 1));
  }
  // Computed from place and date: the same as at this date of another dataset.
  AnalyticOptions later;
  later.start = "2020-03-01", later.end = "2020-03-02", later.max_degree = 4;
  const AnalyticDataset computed(later, kLatitudes, kLongitudes);
  computed.read(1, {1, 4}, below);
  for (size_t column = 0; column < width; ++column) {
    if (std::ranges::find(names, info.variables[column]) != names.end()) continue;
    for (size_t i = 0; i < 3; ++i)
      REQUIRE(row[i * width + column] == below[i * width + column]);
  }
  states.read(5, {1, 4}, row);
  waves()->read(5, {1, 4}, below);
  REQUIRE(row == below);
}

TEST_CASE("what a state lacks is named, and nothing is taken for it", "[state_dataset]") {
  const test::TemporaryFolder folder;
  const fs::path a = folder.path() / "a.nc";
  const std::vector<std::string> names = fields();
  write_states(a, {{names.begin() + 1, names.end()}});
  REQUIRE_THAT(error_of({a}, "2020-03-01"), ContainsSubstring(concat("'", names[0], "'")) &&
                                                ContainsSubstring("2020-03-01T00:00:00"));
  REQUIRE_THAT(error_of({a}, "2020-02-29T18"), ContainsSubstring("2020-02-29T18:00:00") &&
                                                   ContainsSubstring("2020-03-01T06:00:00"));
  REQUIRE_THAT(error_of({a, a}), ContainsSubstring("again in"));
}

TEST_CASE("states of another grid are refused with the cell that differs", "[state_dataset]") {
  const test::TemporaryFolder folder;
  const fs::path a = folder.path() / "a.nc";
  FileSpec spec{fields()};
  spec.latitudes[2] += 0.01;
  write_states(a, spec);
  REQUIRE_THAT(error_of({a}), ContainsSubstring("another grid") && ContainsSubstring("cell 2"));
  spec.latitudes.pop_back(), spec.longitudes.pop_back();
  write_states(a, spec);
  REQUIRE_THAT(error_of({a}), ContainsSubstring("3 cells"));
  write_file_atomic(a, "something else");
  REQUIRE_THAT(error_of({a}), ContainsSubstring("neither a netCDF nor a GRIB file"));
}
