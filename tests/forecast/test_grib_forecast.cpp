// SPDX-License-Identifier: Apache-2.0
#include "forecast/grib_forecast.h"

#include <cmath>

#include "core/check.h"
#include "core/time.h"
#include "data/sources/grib_message.h"
#include "graph/nodes/gaussian_grid.h"
#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/paths.h"

using namespace aifs;
using data::GribMessage;
using forecast::ForecastContents;
using forecast::GribOptions;

namespace {

ForecastContents contents() {
  const graph::Coordinates cells =
      graph::gaussian_coordinates({graph::GaussianKind::kOctahedral, 8});
  return {.start_s = parse_date("2020-02-03T06"),
          .lead_times_s = {21600, 43200},
          .variables = {{"t_850", "K"},
                        {"2t", ""},
                        {"tp", "mm"},
                        {"q_137", "g kg**-1", "ml"},
                        {"sst", ""},
                        {"vo_500", "s**-1"}},
          .num_members = 1,
          .latitudes_deg = cells.lat_deg,
          .longitudes_deg = cells.lon_deg,
          .field_shape = {cells.num_points()},
          .model = "a model",
          .program = "a program",
          .identity = "of this"};
}

float value(size_t lead, size_t member, size_t variable, size_t cell) {
  return static_cast<float>(1000 * variable + 100 * member + 10 * lead) +
         std::sin(static_cast<float>(cell));
}

std::vector<float> fields_of(const ForecastContents& c, size_t lead) {
  std::vector<float> fields;
  for (size_t e = 0; e < static_cast<size_t>(c.num_members); ++e)
    for (size_t v = 0; v < c.variables.size(); ++v)
      for (size_t i = 0; i < c.latitudes_deg.size(); ++i)
        fields.push_back(value(lead, e, v, i));
  if (fields.size() > 7) fields[7] = NAN;  // of the first variable and member
  return fields;
}

fs::path write(const test::TemporaryFolder& folder, const ForecastContents& c,
               const GribOptions& options = {}) {
  const fs::path path = folder.path() / "f.grib";
  const auto file = forecast::create_grib_forecast(path, c, options);
  for (size_t lead = 0; lead < c.lead_times_s.size(); ++lead)
    file->write(static_cast<int64_t>(lead), fields_of(c, lead));
  file->finish();
  return path;
}

std::vector<GribMessage> messages(const fs::path& path) {
  std::vector<GribMessage> all;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  REQUIRE(file);
  while (auto message = GribMessage::read_next(file, path.string()))
    all.push_back(std::move(*message));
  std::fclose(file);
  return all;
}

void require_values(GribMessage& message, std::span<const float> fields, double factor,
                    double bits) {
  message.set("missingValue", 9e20);
  const std::vector<double> values = message.reals("values");
  REQUIRE(values.size() == fields.size());
  const double half_step = 2.0 * factor / (std::exp2(bits) - 1.0);  // values span less than 2
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(fields[i]))
      REQUIRE(values[i] == 9e20);
    else
      REQUIRE(values[i] == Approx(static_cast<double>(fields[i]) * factor)
                               .epsilon(1e-6)  // of fp32 and of the reference value
                               .margin(half_step));
  }
}

}  // namespace

TEST_CASE("messages have parameter, level, step and values of a forecast", "[grib_forecast]") {
  const test::TemporaryFolder folder;
  const ForecastContents c = contents();
  std::vector<GribMessage> all = messages(write(folder, c));
  REQUIRE(all.size() == 12);
  const size_t cells = c.latitudes_deg.size();
  struct Wanted {
    const char *parameter, *type;
    int64_t level;
    const char *first, *second;  // steps
    double factor;
  };
  const Wanted wanted[] = {
      {"t", "isobaricInhPa", 850, "6", "12", 1.0}, {"2t", "heightAboveGround", 2, "6", "12", 1.0},
      {"tp", "surface", 0, "0-6", "6-12", 1e-3},   {"q", "hybrid", 137, "6", "12", 1e-3},
      {"sst", "surface", 0, "6", "12", 1.0},       {"vo", "isobaricInhPa", 500, "6", "12", 1.0}};
  for (size_t lead = 0; lead < 2; ++lead) {
    const std::vector<float> fields = fields_of(c, lead);
    for (size_t v = 0; v < 6; ++v) {
      GribMessage& message = all[lead * 6 + v];
      INFO(wanted[v].parameter);
      REQUIRE(message.text("shortName") == wanted[v].parameter);
      REQUIRE(message.text("typeOfLevel") == wanted[v].type);
      REQUIRE(message.integer("level") == wanted[v].level);
      REQUIRE(message.text("stepRange") == (lead == 0 ? wanted[v].first : wanted[v].second));
      REQUIRE(message.integer("dataDate") == 20200203);
      REQUIRE(message.integer("dataTime") == 600);
      REQUIRE(message.integer("validityTime") == (lead == 0 ? 1200 : 1800));
      REQUIRE(message.text("gridType") == "reduced_gg");
      REQUIRE(message.integer("N") == 8);
      REQUIRE(message.text("dataType") == "fc");
      require_values(message, std::span(fields).subspan(v * cells, cells), wanted[v].factor, 16);
    }
  }
  REQUIRE(all[2].text("units") == "m");
  REQUIRE(all[4].text("units") == "K");
}

TEST_CASE("members are perturbed forecasts, steps may be minutes", "[grib_forecast]") {
  const test::TemporaryFolder folder;
  ForecastContents c = contents();
  c.num_members = 2;
  c.variables = {{"t_850", "K"}, {"tp", "m", "sfc", 900}};
  c.lead_times_s = {1800, 5400};
  std::vector<GribMessage> all = messages(write(folder, c, {.bits = 24, .names = {}, .keys = {}}));
  REQUIRE(all.size() == 8);
  const size_t cells = c.latitudes_deg.size();
  for (size_t i = 0; i < 8; ++i) {
    const size_t lead = i / 4, member = i / 2 % 2, variable = i % 2;
    REQUIRE(all[i].integer("number") == static_cast<int64_t>(member));
    REQUIRE(all[i].integer("numberOfForecastsInEnsemble") == 2);
    REQUIRE(all[i].text("dataType") == "pf");
    REQUIRE(all[i].integer("validityTime") == (lead == 0 ? 630 : 730));
    const std::vector<float> fields = fields_of(c, lead);
    require_values(all[i], std::span(fields).subspan((member * 2 + variable) * cells, cells), 1.0,
                   24);
  }
  all[1].set("stepUnits", std::string("m"));
  REQUIRE(all[1].text("stepRange") == "15-30");
}

TEST_CASE("cells on no known grid come with their coordinates", "[grib_forecast]") {
  const test::TemporaryFolder folder;
  ForecastContents c = contents();
  c.variables = {{"msl", ""}};
  c.latitudes_deg = {10.25, -3.5, 88.0, 0.125}, c.longitudes_deg = {359.5, 12.0, 100.75, 7.0};
  c.field_shape = {4};
  std::vector<GribMessage> all = messages(write(folder, c));
  REQUIRE(all.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    REQUIRE(all[i].text("gridType") == "unstructured_grid");
    if (i >= 2) continue;
    REQUIRE(all[i].integer("parameterCategory") == 191);
    const std::vector<double> got = all[i].reals("values");
    for (size_t k = 0; k < 4; ++k)
      REQUIRE(got[k] == Approx((i == 0 ? c.latitudes_deg : c.longitudes_deg)[k]).margin(1e-6));
  }
  REQUIRE(all[3].text("shortName") == "msl");
}

TEST_CASE("users name parameters and keys", "[grib_forecast]") {
  const test::TemporaryFolder folder;
  ForecastContents c = contents();
  c.variables = {{"ke_850", "J kg**-1"}, {"wind", ""}};
  const auto refused = [&](const GribOptions& options, const char* word, const char* option) {
    try {
      forecast::check_grib(c, options);
    } catch (const ConfigError& error) {
      REQUIRE(error.path() == option);
      REQUIRE_THAT(error.what(), ContainsSubstring(word));
      return;
    }
    FAIL("not refused");
  };
  refused({}, "'ke_850'", "--grib-names");
  refused({.names = {{"ke", "z"}, {"wind", "10si"}}, .keys = {{"noSuchKey", "1"}}}, "noSuchKey",
          "--grib-set");
  refused({.names = {{"ke", "t"}}, .keys = {}}, "'J kg**-1'", "--grib-names");
  c.variables.front().units = "m s**-1";
  refused({.names = {{"ke", "262503"}}, .keys = {}}, "levels", "--grib-names");  // of the ocean
  c.variables.front().units = "J kg**-1";
  const GribOptions options{.names = {{"ke", "z"}, {"wind", "207"}},
                            .keys = {{"generatingProcessIdentifier", "42"}}};
  const std::vector<GribMessage> all = messages(write(folder, c, options));
  REQUIRE(all[0].text("shortName") == "z");
  REQUIRE(all[0].integer("level") == 850);
  REQUIRE(all[1].text("shortName") == "10si");
  REQUIRE(all[1].integer("generatingProcessIdentifier") == 42);
}

TEST_CASE("a GRIB file has its name only when it is whole, and says what it was made of",
          "[grib_forecast]") {
  const test::TemporaryFolder folder;
  ForecastContents c = contents();
  {
    const auto file = forecast::create_grib_forecast(folder.path() / "part.grib", c, {});
    file->write(0, fields_of(c, 0));
  }
  REQUIRE(fs::is_empty(folder.path()));
  REQUIRE(forecast::grib_forecast_identity(write(folder, c)) == "of this");
  fs::remove(folder.path() / "f.grib.json");
  REQUIRE_THROWS_WITH(forecast::grib_forecast_identity(folder.path() / "f.grib"),
                      ContainsSubstring("f.grib.json"));
  std::vector<float> fields = fields_of(c, 0);
  fields[9] = INFINITY;
  const auto file = forecast::create_grib_forecast(folder.path() / "inf.grib", c, {});
  REQUIRE_THROWS_WITH(file->write(0, fields),
                      ContainsSubstring("'t_850' at 6h is infinite in cell 9"));
  const auto full = forecast::create_grib_forecast(folder.path() / "full.grib", c, {});
  const auto fill = [&] {
    const test::FileSizeLimit limit(4096);
    full->write(0, fields_of(c, 0));
    full->write(1, fields_of(c, 1));
    full->finish();
  };
  REQUIRE_THROWS_WITH(fill(), ContainsSubstring("full.grib") && ContainsSubstring("large"));
}
