// SPDX-License-Identifier: Apache-2.0
#include "data/sources/grib_states.h"

#include <cmath>

#include "core/check.h"
#include "core/file_io.h"
#include "core/time.h"
#include "data/sources/grib_message.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using data::GribMessage;
using data::StateField;

namespace {

struct Spec {
  const char *parameter, *level_type;
  int64_t level, date, hour;
  int64_t member = -1;
  double value = 0.0;
};

// A message on 4 x 3 cells, whose values are `value` and whole numbers above it; the last is
// missing.
std::string message_of(const Spec& spec) {
  GribMessage message = GribMessage::new_edition2();
  if (spec.member >= 0) {
    message.set("productDefinitionTemplateNumber", int64_t{1});
    message.set("perturbationNumber", spec.member);
  }
  message.set("dataDate", spec.date);
  message.set("hour", spec.hour);
  message.set("shortName", std::string(spec.parameter));
  message.set("typeOfLevel", std::string(spec.level_type));
  if (spec.level > 0) message.set("level", spec.level);
  message.set("Ni", int64_t{4});
  message.set("Nj", int64_t{3});
  message.set("latitudeOfFirstGridPointInDegrees", 10.0);
  message.set("latitudeOfLastGridPointInDegrees", -10.0);
  message.set("longitudeOfFirstGridPointInDegrees", 0.0);
  message.set("longitudeOfLastGridPointInDegrees", 270.0);
  message.set("iDirectionIncrementInDegrees", 90.0);
  message.set("jDirectionIncrementInDegrees", 10.0);
  message.set("bitsPerValue", int64_t{24});
  message.set("bitmapPresent", int64_t{1});
  message.set("missingValue", 1e20);
  std::vector<double> values;
  for (int i = 0; i < 11; ++i)
    values.push_back(spec.value + i);
  values.push_back(1e20);
  message.set("values", std::span<const double>(values));
  const auto bytes = message.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string error_of(const fs::path& path) {
  try {
    data::open_grib_states(path.string(), "--states");
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("fields of GRIB files are known by parameter, level, date and member", "[grib_states]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "a.grib";
  write_file_atomic(path, message_of({"t", "isobaricInhPa", 500, 20200102, 6, 1, 200}) +
                              message_of({"t", "isobaricInhPa", 500, 20200102, 6, 0, 100}) +
                              message_of({"msl", "meanSea", 0, 20200102, 0, -1, 300}));
  const auto file = data::open_grib_states(path.string(), "--states");
  REQUIRE(file->fields().size() == 2);
  for (size_t f = 0; f < 2; ++f) {
    const StateField& field = file->fields()[f];
    std::vector<float> values(static_cast<size_t>(12 * field.members));
    file->read(f, values);
    REQUIRE(std::isnan(values[11]));
    REQUIRE(file->grids()[field.grid].num_cells == 12);
    REQUIRE(file->grids()[field.grid].longitudes_deg[3] == Approx(270.0));
    if (field.name == "t_500") {
      REQUIRE(field.members == 2);
      REQUIRE(field.date_s == parse_date("2020-01-02T06"));
      REQUIRE(field.units == "K");
      REQUIRE(values[3] == Approx(103.0f).margin(1e-4));
      REQUIRE(values[15] == Approx(203.0f).margin(1e-4));
    } else {
      REQUIRE(field.name == "msl");
      REQUIRE(field.date_s == parse_date("2020-01-02"));
      REQUIRE(values[0] == Approx(300.0f).margin(1e-4));
    }
  }
}

TEST_CASE("GRIB files that are damaged or ambiguous are refused by name", "[grib_states]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "bad.grib";
  const std::string one = message_of({"t", "isobaricInhPa", 500, 20200102, 6, -1, 200});
  write_file_atomic(path, one + one.substr(0, one.size() - 20));
  REQUIRE_THAT(error_of(path), ContainsSubstring("bad.grib") && ContainsSubstring("whole message"));
}

TEST_CASE("fields that a name does not tell apart are marked, and the file is read",
          "[grib_states]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "soil.grib";
  write_file_atomic(path, message_of({"t", "isobaricInhPa", 500, 20200102, 6, -1, 200}) +
                              message_of({"t", "hybrid", 500, 20200102, 6, -1, 210}) +
                              message_of({"msl", "meanSea", 0, 20200102, 6, -1, 300}));
  const auto file = data::open_grib_states(path.string(), "--states");
  REQUIRE(file->fields().size() == 2);
  for (const StateField& field : file->fields())
    REQUIRE(field.is_ambiguous == (field.name == "t_500"));
}
