// SPDX-License-Identifier: Apache-2.0
#include "data/sources/grib_message.h"

#include <fstream>

#include "core/check.h"
#include "core/file_io.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using data::GribMessage;

TEST_CASE("GRIB without ecCodes is refused with the package to install", "[grib_message]") {
  if (data::has_grib()) {
    REQUIRE_NOTHROW(data::require_grib("--format"));
  } else {
    try {
      data::require_grib("--format");
      FAIL("not refused");
    } catch (const ConfigError& error) {
      REQUIRE(error.path() == "--format");
      REQUIRE_THAT(error.hint(), ContainsSubstring("libeccodes-dev"));
    }
    REQUIRE_THROWS_AS(GribMessage::new_edition2(), ConfigError);
  }
}

TEST_CASE("keys that are set are in the message that a file holds", "[grib_message]") {
  if (!data::has_grib()) return;  // the first case says so
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "one.grib";
  GribMessage message = GribMessage::new_edition2();
  message.set("shortName", std::string("t"));
  message.set("typeOfLevel", std::string("isobaricInhPa"));
  message.set("level", int64_t{500});
  std::vector<double> values(static_cast<size_t>(message.integer("numberOfDataPoints")));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 250.0 + static_cast<double>(i % 128);  // whole numbers of 16 bits
  message.set("bitsPerValue", int64_t{16});
  message.set("values", std::span<const double>(values));
  const auto bytes = message.bytes();
  const std::string content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  write_file_atomic(path, content + content);
  std::FILE* file = std::fopen(path.c_str(), "rb");
  for (int i = 0; i < 2; ++i) {
    const auto read = GribMessage::read_next(file, path.string());
    REQUIRE(read);
    REQUIRE(read->text("shortName") == "t");
    REQUIRE(read->integer("level") == 500);
    REQUIRE(read->text("noSuchKey").empty());
    REQUIRE_FALSE(read->find_integer("noSuchKey"));
    const std::vector<double> got = read->reals("values");
    REQUIRE(got.size() == values.size());
    for (size_t k = 0; k < got.size(); ++k)
      REQUIRE(got[k] == Approx(values[k]).margin(127.0 / 65535.0));
  }
  REQUIRE_FALSE(GribMessage::read_next(file, path.string()));
  std::fclose(file);
}

TEST_CASE("faults name the key, or the file and the place", "[grib_message]") {
  if (!data::has_grib()) return;
  GribMessage message = GribMessage::new_edition2();
  REQUIRE_THROWS_WITH(message.set("noSuchKey", int64_t{1}), ContainsSubstring("'noSuchKey'"));
  REQUIRE_THROWS_WITH(message.integer("noSuchKey"), ContainsSubstring("'noSuchKey'"));
  REQUIRE_FALSE(message.try_set("shortName", "nobody_calls_it_so").empty());
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "half.grib";
  const auto bytes = message.bytes();
  const std::string content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  write_file_atomic(path, content + content.substr(0, content.size() / 2));
  std::FILE* file = std::fopen(path.c_str(), "rb");
  REQUIRE(GribMessage::read_next(file, path.string()));
  REQUIRE_THROWS_WITH(
      GribMessage::read_next(file, path.string()),
      ContainsSubstring("half.grib") && ContainsSubstring(concat("from byte ", content.size())));
  std::fclose(file);
}
