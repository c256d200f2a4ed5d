// SPDX-License-Identifier: Apache-2.0
#include "core/json_read.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using Json = nlohmann::ordered_json;

namespace {

std::string fault_of(std::string_view text) {
  try {
    parse_json_file(text, "a.json");
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

// Returns what JsonPlace says when `ask` asks it for something.
std::string complaint(const char* text, const std::function<void(const JsonPlace&)>& ask) {
  const Json json = Json::parse(text);
  try {
    ask(JsonPlace(json, "m.json"));
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("where JSON ends is said by line, column and character", "[json_read]") {
  REQUIRE(fault_of("{\"a\":\n [1, 2}") ==
          "'a.json' is not JSON: line 2, column 7: '}' does not belong there");
  REQUIRE(fault_of("{\"\xc3\xa9\": }") ==
          "'a.json' is not JSON: line 1, column 7: '}' does not belong there");
  REQUIRE(fault_of("{\"a\": 1") ==
          "'a.json' is not JSON: line 1, column 8: it ends where more must follow");
  REQUIRE(fault_of(" \n") == "'a.json' is not JSON: it is empty");
  REQUIRE(fault_of("\"a\nb\"") ==
          "'a.json' is not JSON: line 1, column 3: the end of the line does not belong there");
  REQUIRE_THAT(fault_of("\"\xff\""), ContainsSubstring("column 2: the byte 255"));
  REQUIRE_THAT(fault_of("[1e999]"), ContainsSubstring("too large"));
  REQUIRE(fault_of("{\"a\": [1, null]}").empty());
}

TEST_CASE("a tree has a greatest depth", "[json_read]") {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  REQUIRE(fault_of(nested(200)).empty());
  REQUIRE_THAT(fault_of(nested(202)), ContainsSubstring("200 brackets"));
  REQUIRE_THAT(fault_of(nested(2'000'000)), ContainsSubstring("200 brackets"));
}

TEST_CASE("members have their types, or are named with file and path", "[json_read]") {
  const char* text = R"({"a": {"b": "x", "c": 3, "d": 2.5, "e": [1], "f": null}})";
  const Json json = Json::parse(text);
  const JsonPlace a = JsonPlace(json, "m.json").at("a");
  REQUIRE(a.at("b").text() == "x");
  REQUIRE(a.at("c").integer() == 3);
  REQUIRE(a.at("c").number() == 3.0);
  REQUIRE(a.at("d").number() == 2.5);
  REQUIRE(a.at("e").list().size() == 1);
  REQUIRE(a.object().size() == 5);
  REQUIRE_FALSE(a.find("f").has_value());
  REQUIRE_FALSE(a.find("g").has_value());

  const auto member = [&](const char* key) {
    return [key](const JsonPlace& root) { return root.at("a").at(key); };
  };
  REQUIRE(complaint(text, [&](const JsonPlace& p) { member("b")(p).object(); }) ==
          "'m.json': a.b must be an object, not a text");
  REQUIRE(complaint(text, [&](const JsonPlace& p) { member("b")(p).at("z"); }) ==
          "'m.json': a.b must be an object, not a text");
  REQUIRE(complaint(text, [&](const JsonPlace& p) { member("c")(p).text(); }) ==
          "'m.json': a.c must be a text, not 3");
  REQUIRE(complaint(text, [&](const JsonPlace& p) { member("e")(p).number(); }) ==
          "'m.json': a.e must be a number, not a list");
  REQUIRE(complaint(text, [&](const JsonPlace& p) { member("d")(p).integer(); }) ==
          "'m.json': a.d must be an integer, not 2.5");
  REQUIRE(complaint(text, [&](const JsonPlace& p) { member("c")(p).integer(4); }) ==
          "'m.json': a.c must be an integer >= 4, not 3");
  REQUIRE(complaint(text, [&](const JsonPlace& p) { member("f")(p); }) == "'m.json': a.f is null");
  REQUIRE(complaint(text, [&](const JsonPlace& p) { member("g")(p); }) ==
          "'m.json': a.g is missing");
  REQUIRE(complaint("[]", [&](const JsonPlace& p) { p.at("g"); }) ==
          "'m.json': the whole must be an object, not a list");
  REQUIRE(complaint("18446744073709551615", [&](const JsonPlace& p) { p.integer(); }) ==
          "'m.json': the whole must be an integer, not 18446744073709551615");
}

TEST_CASE("shown values are cut between characters", "[json_read]") {
  REQUIRE(json_shown(Json({1, 2})) == "[1,2]");
  REQUIRE(json_shown(Json(std::string(100, 'x')), 10) == "\"xxxxxx...");
  REQUIRE(json_shown(Json("xxxxx\xc3\xa9\xc3\xa9\xc3\xa9"), 10) == "\"xxxxx...");
}
