// SPDX-License-Identifier: Apache-2.0
// What `aifs-train forecast` writes and begins from, in all formats, as users call it.
#include <cmath>
#include <cstdio>
#include <map>

#include "core/check.h"
#include "core/file_io.h"
#include "core/time.h"
#include "data/sources/grib_message.h"
#include "data/sources/netcdf_file.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using data::GribMessage;

namespace {

// A trained run, made once for all cases of this file.
const fs::path& trained_run() {
  static const test::TemporaryFolder folder;
  static const fs::path run = [] {
    const auto result =
        test::run_train(folder.path() / "run",
                        "--set train.max_steps=10 --set checkpoint.every_steps=0 --set "
                        "train.validation.every_epochs=0 --set train.validation.at_end=false ");
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return folder.path() / "run";
  }();
  return run;
}

test::CommandResult forecast(const fs::path& out, const std::string& options) {
  return test::run_command(concat("'", test::program("aifs-train").string(), "' forecast '",
                                  trained_run().string(), "' --out '", out.string(), "' ",
                                  options));
}

void require_success(const test::CommandResult& result) {
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
}

void require_refused(const test::CommandResult& result, int exit_code,
                     const std::vector<std::string>& words) {
  INFO(result.err);
  REQUIRE(result.exit_code == exit_code);
  for (const std::string& word : words)
    REQUIRE_THAT(result.err, ContainsSubstring(word));
}

std::vector<double> field(const fs::path& file, const std::string& variable) {
  const data::NetcdfFile netcdf(file.string());
  const data::NetcdfVariable* found = netcdf.find(variable);
  REQUIRE(found);
  return netcdf.read_all(*found);
}

// The last `count` values are close to those of the longer list that begin at `first`.
void require_part(const std::vector<double>& part, const std::vector<double>& all, size_t first,
                  double tolerance) {
  REQUIRE(first + part.size() <= all.size());
  double scale = 0.0;
  for (const double value : all)
    scale = std::max(scale, std::abs(value));
  for (size_t i = 0; i < part.size(); ++i)
    REQUIRE(std::abs(part[i] - all[first + i]) <= tolerance * scale);
}

const std::vector<std::string> kFields{"u_850", "v_500", "z_250"};

}  // namespace

TEST_CASE("a GRIB file has the fields of the netCDF file to the precision of its bits",
          "[forecast_files]") {
  const test::TemporaryFolder folder;
  const std::string what = "--dates 2020-02-01T06 --lead-time 18h --variables u_850,v_500,z_250 ";
  const auto result = forecast(folder.path() / "grib", what + "--format grib");
  if (!data::has_grib()) return require_refused(result, 2, {"'--format'", "libeccodes-dev"});
  require_success(result);
  require_success(forecast(folder.path() / "nc", what));
  const fs::path path = folder.path() / "grib/forecast-20200201T0600.grib";
  std::map<std::string, std::vector<double>> wanted;
  for (const std::string& name : kFields)
    wanted[name] = field(folder.path() / "nc/forecast-20200201T0600.nc", name);
  std::FILE* file = std::fopen(path.c_str(), "rb");
  REQUIRE(file);
  size_t count = 0;
  while (const auto message = GribMessage::read_next(file, path.string())) {
    if (message->integer("parameterCategory") == 191) continue;  // coordinates
    const std::string name = concat(message->text("shortName"), "_", message->integer("level"));
    REQUIRE(name == kFields[count % 3]);
    REQUIRE(message->integer("forecastTime") == static_cast<int64_t>(6 * (count / 3 + 1)));
    const std::vector<double> values = message->reals("values");
    const std::vector<double>& all = wanted.at(name);
    REQUIRE(all.size() == 3 * values.size());
    const auto begin = all.begin() + static_cast<int64_t>(count / 3 * values.size());
    const auto [least, most] = std::minmax_element(begin, begin + std::ssize(values));
    for (size_t i = 0; i < values.size(); ++i)
      REQUIRE(std::abs(values[i] - *(begin + static_cast<int64_t>(i))) <=
              (*most - *least) / 65535.0 + 1e-6 * std::abs(values[i]));
    ++count;
  }
  std::fclose(file);
  REQUIRE(count == 9);
  const auto again = forecast(folder.path() / "grib", what + "--format grib");
  REQUIRE_THAT(again.err, ContainsSubstring("1 of 1 forecasts are there already"));
  require_refused(forecast(folder.path() / "grib", what + "--format grib --grib-bits 12"), 2,
                  {"another forecast"});
  require_refused(forecast(folder.path() / "ke", "--dates 2020-02-01T06 --format grib"), 2,
                  {"'--grib-names'", "'ke_850'"});
  require_success(forecast(folder.path() / "ke",
                           "--dates 2020-02-01T06 --lead-time 6h --format grib "
                           "--grib-names ke=z --grib-set centre=lfpw"));
}

TEST_CASE("a forecast goes on from its own last times, from netCDF and GRIB files",
          "[forecast_files]") {
  const test::TemporaryFolder folder;
  const fs::path &root = folder.path(), last = "forecast-20200202T0600.nc";
  require_success(forecast(root / "all", "--dates 2020-02-01T06 --lead-time 2d"));
  require_success(forecast(root / "first", "--dates 2020-02-01T06 --lead-time 1d"));
  const fs::path states = root / "first/forecast-20200201T0600.nc";
  require_success(
      forecast(root / "second", concat("--lead-time 1d --states '", states.string(), "'")));
  for (const std::string& name : kFields) {
    const std::vector<double> all = field(root / "all/forecast-20200201T0600.nc", name);
    require_part(field(root / "second" / last, name), all, all.size() / 2, 1e-4);
  }
  // Dates of the dataset need no file; those that neither has are named.
  require_refused(
      forecast(root / "no", concat("--dates 2020-02-03 --states '", states.string(), "'")), 3,
      {"2020-02-03T00:00:00", "2020-02-02T06:00:00"});
  require_refused(forecast(root / "no", "--states nothing.nc"), 3, {"nothing.nc"});
  if (!data::has_grib()) return;
  require_success(forecast(root / "grib",
                           "--dates 2020-02-01T06 --lead-time 1d --format grib "
                           "--grib-bits 24 --grib-names ke=z,ke_850=10si"));
  const fs::path grib = root / "grib/forecast-20200201T0600.grib";
  require_success(
      forecast(root / "third", concat("--lead-time 1d --states '", grib.string(), "'")));
  for (const std::string& name : kFields) {
    const std::vector<double> all = field(root / "all/forecast-20200201T0600.nc", name);
    require_part(field(root / "third" / last, name), all, all.size() / 2, 1e-4);
  }
  const std::string bytes = read_file(grib);
  write_file_atomic(root / "half.grib", bytes.substr(0, bytes.size() / 2 + 17));
  require_refused(forecast(root / "no", concat("--states '", (root / "half.grib").string(), "'")),
                  3, {"half.grib", "truncated"});
}

TEST_CASE("files have the cells of an area or a regular grid", "[forecast_files]") {
  const test::TemporaryFolder folder;
  const std::string what = "--dates 2020-02-01T06 --lead-time 12h --variables z_250 ";
  const auto file = [&](const char* out) {
    return folder.path() / out / "forecast-20200201T0600.nc";
  };
  require_success(forecast(folder.path() / "all", what));
  require_success(forecast(folder.path() / "area", what + "--area 60/-20/20/40"));
  const std::vector<double> latitudes = field(file("area"), "latitude");
  const std::vector<double> longitudes = field(file("area"), "longitude");
  REQUIRE(latitudes.size() > 3);
  const std::vector<double> all = field(file("all"), "z_250"), area = field(file("area"), "z_250");
  const std::vector<double> all_latitudes = field(file("all"), "latitude");
  const std::vector<double> all_longitudes = field(file("all"), "longitude");
  size_t next = 0;
  for (size_t i = 0; i < all_latitudes.size(); ++i) {
    const double east = std::remainder(all_longitudes[i], 360.0);
    if (all_latitudes[i] > 60 || all_latitudes[i] < 20 || east < -20 || east > 40) continue;
    REQUIRE(next < latitudes.size());
    REQUIRE(area[next] == all[i]);
    REQUIRE(latitudes[next++] == all_latitudes[i]);
  }
  REQUIRE(next == latitudes.size());
  for (const char* kind : {"conservative", "nearest"}) {
    require_success(forecast(folder.path() / kind, what + "--grid 10/5 --interpolation " + kind));
    REQUIRE(field(file(kind), "latitude").size() == 37);
    REQUIRE(field(file(kind), "longitude").size() == 36);
    const auto [least, most] = std::minmax_element(all.begin(), all.end());
    for (const double value : field(file(kind), "z_250"))
      REQUIRE((value >= *least - 1.0 && value <= *most + 1.0));
  }
  require_refused(
      forecast(folder.path() / "nearest", what + "--grid 10/10 --interpolation nearest"), 2,
      {"another forecast"});
  require_refused(forecast(folder.path() / "no", what + "--grid 7/5"), 2, {"'--grid'", "divide"});
  require_refused(forecast(folder.path() / "no", what + "--area 20/0/60/1"), 2, {"'--area'"});
  require_success(forecast(folder.path() / "zarr", what + "--grid 10/5 --format zarr"));
}

TEST_CASE("an interrupted forecast goes on where it was, with the bits of one that was not",
          "[forecast_files]") {
  const test::TemporaryFolder folder;
  const std::string what = "--dates 2020-02-01T06 --lead-time 60d --save-every 0s ";
  const fs::path whole = folder.path() / "whole", part = folder.path() / "part";
  require_success(forecast(whole, what));
  const fs::path file = part / "forecast-20200201T0600.nc";
  const std::string command =
      concat("'", test::program("aifs-train").string(), "' forecast '", trained_run().string(),
             "' --out '", part.string(), "' ", what);
  // Ends it with each signal once it has written a restart file.
  const std::string restart = file.string() + ".tmp-restart";
  const std::string stamp = (folder.path() / "stamp").string();
  for (const char* signal : {"KILL", "TERM"}) {
    const auto stopped = test::run_command(concat(
        "touch '", stamp, "'; ", command, " & p=$!; while kill -0 $p 2>/dev/null && ! [ '", restart,
        "' -nt '", stamp, "' ]; do sleep 0.01; done; kill -", signal, " $p; wait $p"));
    INFO(stopped.err);
    REQUIRE(stopped.exit_code == (std::string(signal) == "TERM" ? 5 : 128 + 9));
    REQUIRE(fs::exists(restart));
    REQUIRE_FALSE(fs::exists(file));
  }
  const auto result = test::run_command(command);
  require_success(result);
  REQUIRE_THAT(result.err, ContainsSubstring("goes on after"));
  for (const char* name : {"u_850", "v_500", "z_250", "ke_850"})
    REQUIRE(field(file, name) == field(whole / file.filename(), name));
  REQUIRE_FALSE(fs::exists(restart));
  REQUIRE_FALSE(fs::exists(file.string() + ".tmp-partial"));
  // A full disk may leave a netCDF file that cannot be opened: it is begun anew then.
  fs::remove(file);
  const auto limited = test::run_command(concat("ulimit -f 200; ", command));
  INFO(limited.err);
  REQUIRE(limited.exit_code == 1);
  REQUIRE_THAT(limited.err, ContainsSubstring("forecast-20200201T0600.nc"));
  require_success(test::run_command(command));
  REQUIRE(field(file, "z_250") == field(whole / file.filename(), "z_250"));
}
