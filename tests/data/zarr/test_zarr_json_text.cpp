// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/json_text.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::zarr;

TEST_CASE("Python's bare words become texts, inside texts they stay", "[zarr][json]") {
  const Json json = parse_json(R"({"a": NaN, "b": [Infinity, -Infinity], "c": "NaN \" NaN"})", "f");
  REQUIRE(json["a"] == "NaN");
  REQUIRE(json["b"] == Json({"Infinity", "-Infinity"}));
  REQUIRE(json["c"] == "NaN \" NaN");
}

TEST_CASE("text that is no JSON is an error that names the file", "[zarr][json]") {
  for (const char* text : {"", "{", "{\"a\": }", "{\"a\": 1} x", "\"", "\"\\", "nan", "{'a': 1}"}) {
    REQUIRE_THROWS_WITH(parse_json(text, "d/.zarray"),
                        ContainsSubstring("d/.zarray") && ContainsSubstring("JSON"));
  }
}

TEST_CASE("the fault is placed in the text as it was written", "[zarr][json]") {
  REQUIRE_THROWS_WITH(parse_json("{\"a\": NaN, \"b\": [NaN, ]}", "f"),
                      ContainsSubstring("line 1, column 23: ']' does not belong there"));
  REQUIRE_THROWS_WITH(parse_json("{\"a\": 1e999}", "f"),
                      ContainsSubstring("too large") && !ContainsSubstring("exception"));
}

TEST_CASE("nesting has an end", "[zarr][json]") {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  REQUIRE_NOTHROW(parse_json(nested(200), "f"));
  REQUIRE_THROWS_AS(parse_json(nested(201), "f"), DataError);
  REQUIRE_THROWS_AS(parse_json(std::string(10'000'000, '['), "f"), DataError);
}

TEST_CASE("values in messages are short", "[zarr][json]") {
  REQUIRE(shown(Json({1, 2})) == "[1,2]");
  REQUIRE(shown(Json(std::string(1000, 'x'))).size() == 80);
  REQUIRE_NOTHROW(shown(Json("\xff")));
}

TEST_CASE("an absent file is nothing, an empty one an error", "[zarr][json]") {
  MemoryStore store("memory");
  REQUIRE_FALSE(read_json(store, ".zattrs").has_value());
  store.put(".zattrs", "");
  REQUIRE_THROWS_WITH(read_json(store, ".zattrs"), ContainsSubstring("memory/.zattrs"));
}
