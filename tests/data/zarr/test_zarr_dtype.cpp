// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/dtype.h"

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::zarr;

TEST_CASE("numpy's type strings mean what numpy says", "[zarr][dtype]") {
  struct Case {
    const char* text;
    const char* name;
    Kind kind;
    int64_t item_bytes;
    bool big_endian;
  };
  for (const Case& c : {Case{"<f4", "float32", Kind::kFloat, 4, false},
                        {">f8", "float64", Kind::kFloat, 8, true},
                        {"<f2", "float16", Kind::kFloat, 2, false},
                        {"|b1", "bool", Kind::kBool, 1, false},
                        {"|i1", "int8", Kind::kInteger, 1, false},
                        {">i8", "int64", Kind::kInteger, 8, true},
                        {"<u2", "uint16", Kind::kUnsigned, 2, false},
                        {"<M8[ns]", "datetime64", Kind::kDate, 8, false},
                        {">m8[25us]", "timedelta64", Kind::kDuration, 8, true}}) {
    const DataType type = parse_numpy_type(c.text);
    REQUIRE(type.kind == c.kind);
    REQUIRE(type.item_bytes == c.item_bytes);
    REQUIRE(type.big_endian == c.big_endian);
    REQUIRE(type.name() == c.name);
  }
}

TEST_CASE("only little-endian float32 can be used as it lies in memory", "[zarr][dtype]") {
  REQUIRE(parse_numpy_type("<f4").is_native_float());
  for (const char* text : {">f4", "<f8", "<i4", "<u4", "<f2"})
    REQUIRE_FALSE(parse_numpy_type(text).is_native_float());
}

TEST_CASE("types that hold no numbers are refused", "[zarr][dtype]") {
  for (const char* text :
       {"",       "|O",     "|S4",    "<U8",     "<c8",    "|V16",         "f4",
        "<f4 ",   "<f16",   "<i3",    "<f",      "<f4[s]", "<M8",          "<M8[]",
        "<M8[M]", "<M8[Y]", "<M8[x]", "<M8[0s]", "<M4[s]", "<f99999999999"}) {
    INFO(text);
    REQUIRE_THROWS_AS(parse_numpy_type(text), DataError);
  }
  const std::string endless(5'000'000, 'x');
  REQUIRE_THROWS_AS(parse_numpy_type("<M8[" + endless + "]"), DataError);
  REQUIRE_THROWS_AS(parse_type_name(endless), DataError);
  REQUIRE_THROWS_AS(parse_time_unit(endless, 1), DataError);
  REQUIRE_THROWS_WITH(parse_numpy_type("|O"), ContainsSubstring("dtype"));
  for (const char* name : {"", "float", "complex64", "string", "r16", "datetime64"})
    REQUIRE_THROWS_AS(parse_type_name(name), DataError);
  REQUIRE(parse_type_name("int16").item_bytes == 2);
}

TEST_CASE("counts of any unit are the same moment", "[zarr][dtype]") {
  // 2020-01-31T06:00:00 is 1580450400 s.
  struct Case {
    const char* type;
    int64_t count;
  };
  for (const Case& c : {Case{"<M8[s]", 1580450400},
                        {"<M8[ms]", 1580450400000},
                        {"<M8[us]", 1580450400000000},
                        {"<M8[ns]", 1580450400000000000},
                        {"<M8[m]", 26340840},
                        {"<M8[h]", 439014},
                        {"<M8[6h]", 73169}}) {
    INFO(c.type);
    REQUIRE(to_seconds(parse_numpy_type(c.type).unit, c.count) == 1580450400);
  }
  REQUIRE(to_seconds(parse_numpy_type("<M8[D]").unit, -1) == -86400);
  REQUIRE(to_seconds(parse_numpy_type("<M8[W]").unit, 2) == 1209600);
}

TEST_CASE("moments that are no whole second, or in no calendar, are refused", "[zarr][dtype]") {
  REQUIRE(to_seconds({1, 1000}, kNotATime) == kNotATime);
  REQUIRE_THROWS_AS(to_seconds({1, 1000}, 1500), DataError);
  REQUIRE_THROWS_AS(to_seconds({1, 1}, INT64_MAX), DataError);
  REQUIRE_THROWS_AS(to_seconds({604800, 1}, INT64_MAX), DataError);
  REQUIRE_THROWS_AS(to_seconds({604800, 1}, INT64_MIN + 1), DataError);
}
