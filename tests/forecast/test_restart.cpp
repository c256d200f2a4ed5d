// SPDX-License-Identifier: Apache-2.0
#include "forecast/restart.h"

#include <cmath>
#include <map>

#include "core/check.h"
#include "core/time.h"
#include "data/sources/grib_message.h"
#include "forecast/grib_forecast.h"
#include "forecast/netcdf_forecast.h"
#include "forecast/zarr_forecast.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using forecast::ForecastContents;
using forecast::ForecastFile;
using forecast::Restart;

namespace {

ForecastContents contents() {
  return {.start_s = parse_date("2020-02-03T06"),
          .lead_times_s = {21600, 43200, 64800},
          .variables = {{"t_850", ""}, {"msl", ""}},
          .num_members = 1,
          .latitudes_deg = {10.0, 10.0, 10.0, -20.0, -20.0, -20.0},
          .longitudes_deg = {0.0, 120.0, 240.0, 0.0, 120.0, 240.0},
          .field_shape = {2, 3},
          .model = "a model",
          .program = "a program",
          .identity = "of this"};
}

std::vector<float> fields(int64_t lead) {
  std::vector<float> values;
  for (int i = 0; i < 12; ++i)
    values.push_back(static_cast<float>(100 * lead + i * i));
  values[3] = NAN;
  return values;
}

std::unique_ptr<ForecastFile> create(const std::string& format, const fs::path& path,
                                     ForecastContents c) {
  if (format == "zarr") return forecast::create_zarr_forecast(path, std::move(c));
  if (format == "grib") return forecast::create_grib_forecast(path, std::move(c), {});
  return forecast::create_netcdf_forecast(path, std::move(c), 1);
}

// All files of a folder, or the file itself, by name.
std::map<std::string, std::string> bytes_of(const fs::path& path) {
  std::map<std::string, std::string> bytes;
  if (fs::is_regular_file(path)) return {{"", read_file(path)}};
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file())
      bytes[fs::relative(entry.path(), path).string()] = read_file(entry.path());
  return bytes;
}

std::vector<std::string> formats() {
  std::vector<std::string> all{"netcdf", "zarr"};
  if (data::has_grib()) all.push_back("grib");
  return all;
}

}  // namespace

TEST_CASE("a restart file comes back as it was, for its own forecast only", "[restart]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "f.tmp-restart";
  REQUIRE_FALSE(forecast::read_restart(path, "a"));
  const std::vector<std::byte> bytes{std::byte{1}, std::byte{0}, std::byte{255}};
  forecast::write_restart(path, "a", {.steps = 7, .files = {"x", ""}, .inputs = {bytes, {}}});
  const std::optional<Restart> read = forecast::read_restart(path, "a");
  REQUIRE(read);
  REQUIRE(read->steps == 7);
  REQUIRE(read->files == std::vector<std::string>{"x", ""});
  REQUIRE((read->inputs == std::vector<std::vector<std::byte>>{bytes, {}}));
  REQUIRE_FALSE(forecast::read_restart(path, "b"));
  write_file_atomic(path, "damaged");
  REQUIRE_THROWS_AS(forecast::read_restart(path, "a"), DataError);
}

TEST_CASE("a file that goes on behind its state is the file that was never interrupted",
          "[restart]") {
  for (const std::string& format : formats()) {
    INFO(format);
    const test::TemporaryFolder folder;
    const auto whole = create(format, folder.path() / "whole", contents());
    for (int64_t lead = 0; lead < 3; ++lead)
      whole->write(lead, fields(lead));
    whole->finish();
    ForecastContents c = contents();
    c.partial.path = folder.path() / "part.tmp-partial";
    {
      const auto file = create(format, folder.path() / "part", c);
      file->write(0, fields(0));
      file->write(1, fields(1));
      c.partial.state = file->keep();
      file->write(2, std::vector<float>(12, 4.0f));  // what a process had when it was killed
    }
    REQUIRE(fs::exists(c.partial.path));
    REQUIRE_FALSE(fs::exists(folder.path() / "part"));
    const auto file = create(format, folder.path() / "part", c);
    file->write(2, fields(2));
    file->finish();
    REQUIRE_FALSE(fs::exists(c.partial.path));
    if (format != "netcdf")  // whose free space depends on what was written before
      REQUIRE(bytes_of(folder.path() / "part") == bytes_of(folder.path() / "whole"));
  }
}

TEST_CASE("a state that is gone or damaged is not gone on from", "[restart]") {
  for (const std::string& format : formats()) {
    INFO(format);
    const test::TemporaryFolder folder;
    ForecastContents c = contents();
    c.partial.path = folder.path() / "part.tmp-partial";
    {
      const auto file = create(format, folder.path() / "part", c);
      file->write(0, fields(0));
      c.partial.state = file->keep();
    }
    if (format == "netcdf") {
      const std::string state = c.partial.state;
      c.partial.state.back() = state.back() == '0' ? '1' : '0';
      REQUIRE_THROWS_WITH(create(format, folder.path() / "part", c), ContainsSubstring("damaged"));
      c.partial.state = state;
    }
    fs::remove_all(c.partial.path);
    REQUIRE_THROWS_AS(create(format, folder.path() / "part", c), DataError);
  }
}

TEST_CASE("a netCDF file does not go on with another compression", "[restart]") {
  for (const int compression : {0, 1}) {
    const test::TemporaryFolder folder;
    const fs::path path = folder.path() / "part.nc";
    ForecastContents c = contents();
    c.partial.path = folder.path() / "part.tmp-partial";
    {
      const auto file = forecast::create_netcdf_forecast(path, c, compression);
      file->write(0, fields(0));
      c.partial.state = file->keep();
    }
    REQUIRE_THROWS_WITH(forecast::create_netcdf_forecast(path, c, 1 - compression),
                        ContainsSubstring("compressed in another way"));
    REQUIRE_NOTHROW(forecast::create_netcdf_forecast(path, c, compression));
  }
}

TEST_CASE("a restart file whose parts do not fit together is refused", "[restart]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "f.tmp-restart";
  const std::vector<std::byte> bytes{std::byte{1}};
  forecast::write_restart(path, "a", {.steps = 7, .files = {"x", ""}, .inputs = {bytes}});
  REQUIRE_THROWS_AS(forecast::read_restart(path, "a"), DataError);
  forecast::write_restart(path, "a", {.steps = 0, .files = {"x"}, .inputs = {bytes}});
  REQUIRE_THROWS_AS(forecast::read_restart(path, "a"), DataError);
}
