// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/fill_value.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::zarr;

namespace {

FillValue fill(const char* json, const char* dtype) {
  return parse_fill_value(parse_json(json, "f"), parse_numpy_type(dtype));
}

}  // namespace

TEST_CASE("fill values are read as the type they fill", "[zarr][fill]") {
  const DataType f4 = parse_numpy_type("<f4"), i8 = parse_numpy_type("<i8");
  REQUIRE(fill("7.5", "<f4").as<float>(f4) == 7.5F);
  REQUIRE(fill("-3", "<f4").as<double>(f4) == -3.0);
  REQUIRE(std::isnan(fill("\"NaN\"", "<f4").as<float>(f4)));
  REQUIRE(std::isnan(fill("NaN", "<f4").as<float>(f4)));
  REQUIRE(fill("\"-Infinity\"", "<f8").real == -std::numeric_limits<double>::infinity());
  REQUIRE(fill("9007199254740993", "<i8").as<int64_t>(i8) == 9007199254740993);
  REQUIRE(fill("true", "|b1").integer == 1);
  REQUIRE(fill("5.0", "<i4").integer == 5);
  REQUIRE(fill("-9223372036854775808", "<M8[s]").integer == kNotATime);
  REQUIRE(fill("\"NaT\"", "<M8[s]").integer == kNotATime);
}

TEST_CASE("hexadecimal fill values are the bits of a float", "[zarr][fill]") {
  REQUIRE(std::isnan(fill("\"0x7fc00000\"", "<f4").real));
  REQUIRE(fill("\"0x3f800000\"", "<f4").real == 1.0);
  REQUIRE(fill("\"0x3f800000\"", ">f4").real == 1.0);
  REQUIRE(fill("\"0xc000000000000000\"", "<f8").real == -2.0);
  REQUIRE(fill("\"0x3c00\"", "<f2").real == 1.0);
  for (const char* text : {"\"0x3f80\"", "\"0x3f80000g\"", "\"3f800000\"", "\"0x\""})
    REQUIRE_THROWS_AS(fill(text, "<f4"), DataError);
}

TEST_CASE("a fill value that the type cannot hold is refused", "[zarr][fill]") {
  for (const char* text : {"1.5", "\"NaN\"", "1e300", "[]", "{}", "\"x\""}) {
    REQUIRE_THROWS_WITH(fill(text, "<i4"), ContainsSubstring("fill_value"));
  }
  REQUIRE_THROWS_AS(fill("[1]", "<f4"), DataError);
}

TEST_CASE("a fill value beyond its type is refused", "[zarr][fill]") {
  for (const auto& [text, dtype] :
       std::vector<std::pair<const char*, const char*>>{{"1e39", "<f4"},
                                                        {"-1e39", "<f4"},
                                                        {"70000", "<f2"},
                                                        {"128", "|i1"},
                                                        {"-129", "|i1"},
                                                        {"-1", "|u1"},
                                                        {"256", "|u1"},
                                                        {"2147483648", "<i4"},
                                                        {"18446744073709551615", "<i8"},
                                                        {"18446744073709551615", "<M8[s]"}}) {
    INFO(text << " " << dtype);
    REQUIRE_THROWS_WITH(fill(text, dtype), ContainsSubstring("fill_value"));
  }
  REQUIRE(fill("127", "|i1").integer == 127);
  REQUIRE(fill("-128", "|i1").integer == -128);
  REQUIRE(fill("255", "|u1").integer == 255);
  REQUIRE(fill("9.969209968386869e36", "<f4").as<float>(parse_numpy_type("<f4")) == 0x1.ep122F);
}

TEST_CASE("fill values are named in messages", "[zarr][fill]") {
  const auto text = [](const char* json, const char* dtype) {
    return fill(json, dtype).text(parse_numpy_type(dtype));
  };
  REQUIRE(text("NaN", "<f4") == "NaN");
  REQUIRE(text("0.0", "<f8") == "0");
  REQUIRE(text("7.5", "<f4") == "7.5");
  REQUIRE(text("7", "<i8") == "7");
  REQUIRE(text("\"NaT\"", "<M8[s]") == "not a time");
  REQUIRE(text("null", "<f4") == "undefined");
  REQUIRE_FALSE(fill("null", "<f4").defined);
}
