// SPDX-License-Identifier: Apache-2.0
// Training on netCDF files: the same losses as from an Anemoi dataset of the same values.
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/check.h"
#include "core/file_io.h"
#include "data/sources/computed_forcings.h"
#include "data/sources/netcdf_dataset.h"
#include "tests/support/catch.h"
#include "tests/support/netcdf_writer.h"
#include "tests/support/paths.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using Json = nlohmann::ordered_json;
using test::NetcdfWriter;

namespace {

constexpr size_t kDates = 12, kRows = 5, kColumns = 8, kCells = kRows * kColumns;
constexpr size_t kLevels = 2;
constexpr const char* kForcings[] = {"cos_latitude", "cos_local_time", "insolation"};

double latitude(size_t row) {
  return 60.0 - 30.0 * static_cast<double>(row);
}

// Exactly what a packed value of two bytes gives.
double field(int number, size_t date, size_t cell) {
  const double wave = std::sin(0.7 * static_cast<double>(date) + 0.3 * static_cast<double>(cell) +
                               static_cast<double>(number));
  return std::round(1000.0 * wave) * 0.25 + 50.0;
}

// Half of the dates in each of two files of winds; temperatures on levels, packed, in a third.
void write_netcdf(const fs::path& folder) {
  const auto axes = [](NetcdfWriter& file, size_t first, size_t count) {
    std::vector<double> hours, lats, lons;
    for (size_t t = first; t < first + count; ++t)
      hours.push_back(6.0 * static_cast<double>(t));
    for (size_t y = 0; y < kRows; ++y)
      lats.push_back(latitude(y));
    for (size_t x = 0; x < kColumns; ++x)
      lons.push_back(45.0 * static_cast<double>(x));
    write_coordinate(file, "time", "hours since 2020-01-01", hours);
    write_coordinate(file, "lat", "degrees_north", lats);
    write_coordinate(file, "lon", "degrees_east", lons);
  };
  for (size_t half = 0; half < 2; ++half) {
    NetcdfWriter file(folder / concat("winds_", half, ".nc"), half == 0);
    const size_t first = half * kDates / 2;
    axes(file, first, kDates / 2);
    std::vector<double> values;
    for (size_t t = first; t < first + kDates / 2; ++t)
      for (size_t n = 0; n < kCells; ++n)
        values.push_back(field(0, t, n));
    file.variable("UWND", "f4", {"time", "lat", "lon"}, {{"units", "m/s"}}, values);
  }
  NetcdfWriter file(folder / "levels.nc");
  axes(file, 0, kDates);
  write_coordinate(file, "level", "hPa", {850.0, 500.0});
  std::vector<double> stored;
  for (size_t t = 0; t < kDates; ++t)
    for (size_t level = 0; level < kLevels; ++level)
      for (size_t n = 0; n < kCells; ++n)
        stored.push_back((field(1 + static_cast<int>(level), t, n) - 50.0) / 0.25);
  file.variable("t", "i2", {"time", "level", "lat", "lon"},
                {{"scale_factor", std::vector{0.25}},
                 {"add_offset", std::vector{50.0}},
                 {"_FillValue", std::vector{-32768.0}}},
                stored);
}

// Writes the same fields and statistics as an Anemoi dataset.
void write_zarr(const fs::path& folder, const data::DatasetInfo& info) {
  const std::vector<std::string>& names = info.variables;
  REQUIRE(names == std::vector<std::string>{"10u", kForcings[0], kForcings[1], kForcings[2],
                                            "t_500", "t_850"});
  const auto count = static_cast<int64_t>(names.size());
  zarr::MemoryStore store("memory");
  store.put(".zgroup", R"({"zarr_format": 2})");
  store.put(".zattrs", Json{{"variables", names},
                            {"frequency", "6h"},
                            {"missing_dates", Json::array()},
                            {"field_shape", {kRows, kColumns}},
                            {"resolution", nullptr}}
                           .dump());
  const auto value = [&](size_t date, size_t variable, size_t cell) -> double {
    if (variable == 0) return field(0, date, cell);
    if (variable >= 4) return field(variable == 5 ? 1 : 2, date, cell);
    const double lat = info.latitudes_deg[cell], lon = info.longitudes_deg[cell];
    float one = 0.0f;
    data::compute_forcing(names[variable], info.dates_s[date], {&lat, 1}, {&lon, 1}, {&one, 1});
    return static_cast<double>(one);
  };
  const auto at = [](int64_t index) { return static_cast<size_t>(index); };
  test::write_array(
      store, "data", {.shape = {kDates, count, 1, kCells}, .chunks = {1, count, 1, kCells}},
      [&](const std::vector<int64_t>& i) { return value(at(i[0]), at(i[1]), at(i[3])); });
  const auto vector = [&](const std::string& name, const char* dtype, int64_t length,
                          const std::function<double(size_t)>& one) {
    test::write_array(store, name,
                      {.shape = {length}, .chunks = {length}, .dtype = dtype, .fill_value = "0"},
                      [&](const std::vector<int64_t>& i) { return one(at(i[0])); });
  };
  vector("dates", "<M8[s]", kDates, [&](size_t i) { return static_cast<double>(info.dates_s[i]); });
  vector("latitudes", "<f8", kCells, [&](size_t i) { return info.latitudes_deg[i]; });
  vector("longitudes", "<f8", kCells, [&](size_t i) { return info.longitudes_deg[i]; });
  const auto statistics = [&](const std::string& prefix, const data::Statistics& s) {
    vector(prefix + "mean", "<f8", count, [&](size_t i) { return s.mean[i]; });
    vector(prefix + "stdev", "<f8", count, [&](size_t i) { return s.stdev[i]; });
    vector(prefix + "minimum", "<f8", count, [&](size_t i) { return s.minimum[i]; });
    vector(prefix + "maximum", "<f8", count, [&](size_t i) { return s.maximum[i]; });
  };
  statistics("", info.statistics);
  statistics("statistics_tendencies_6h_", info.tendencies.at(21600));
  test::write_to_folder(store, folder);
}

// The loss of every step of a run, as it stands in the log.
std::vector<std::string> losses(const fs::path& folder, const Json& dataset,
                                const std::string& name, const std::string& more = "") {
  const Json config{
      {"run", {{"dir", (folder / name).string()}, {"threads", 1}, {"device", "cpu"}}},
      {"data",
       {{"dataset", dataset},
        {"training", {{"end", "2020-01-03"}}},
        {"validation", {{"start", "2020-01-03"}}},
        {"forcing", kForcings},
        {"normalizer", {{"none", {"cos_latitude", "cos_local_time", "insolation"}}}}}},
      {"graph", {{"hidden", {{"refinement", 1}}}}},
      {"model", {{"channels", 8}, {"layers", 1}}},
      {"train", {{"max_steps", 8}}},
      {"log", {{"every_steps", 1}}}};
  const fs::path file = folder / (name + ".json");
  write_file_atomic(file, config.dump());
  const test::CommandResult result = test::run_command(
      concat("'", test::program("aifs-train").string(), "' --config '", file.string(), "' ", more));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  std::vector<std::string> found;
  std::istringstream lines(read_file(folder / name / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);)
    found.push_back(Json::parse(line)["loss"].dump());
  return found;
}

}  // namespace

TEST_CASE("a run reads netCDF files, and learns the same as from an Anemoi dataset",
          "[netcdf_training]") {
  const test::TemporaryFolder folder;
  write_netcdf(folder.path());
  data::DatasetOptions options;
  options.netcdf = {
      .files = {(folder.path() / "winds_*.nc").string(), (folder.path() / "levels.nc").string()},
      .variables = {{"UWND", "10u"}, {"t", "t"}},
      .forcings = {kForcings[0], kForcings[1], kForcings[2]}};
  write_zarr(folder.path() / "a.zarr", data::NetcdfDataset(options).info());
  const Json netcdf{{"netcdf", {"winds_*.nc", "levels.nc"}},  // beside the configuration
                    {"variables", {{"UWND", "10u"}, {"t", "t"}}},
                    {"forcings", kForcings}};
  const std::vector<std::string> one = losses(folder.path(), netcdf, "from_netcdf");
  CHECK(one.size() == 8);
  CHECK(one == losses(folder.path(), "a.zarr", "from_zarr"));
  CHECK(one == losses(folder.path(), netcdf, "by_threads", "--set data.threads=4"));
}

TEST_CASE("a dataset is either of netCDF files or an Anemoi dataset", "[netcdf_training]") {
  const test::TemporaryFolder folder;
  const auto fails = [&](const Json& dataset, int code, const char* words) {
    const fs::path file = folder.path() / "a.json";
    write_file_atomic(file, Json{{"run", {{"dir", (folder.path() / "run").string()}}},
                                 {"data", {{"dataset", dataset}}}}
                                .dump());
    const test::CommandResult result = test::run_command(
        concat("'", test::program("aifs-train").string(), "' --config '", file.string(), "'"));
    INFO(result.err);
    CHECK(result.exit_code == code);
    CHECK(result.err.find(words) != std::string::npos);
  };
  fails({{"netcdf", "a.nc"}, {"dataset", "a.zarr"}}, 2, "data.dataset.netcdf");
  fails({{"netcdf", "a.nc"}}, 3, "a.nc");
  fails({{"netcdf", "*.nc"}}, 2, "*.nc");
  fails({{"dataset", "a.zarr"}, {"forcings", {"insolation"}}}, 2, "data.dataset.forcings");
}
