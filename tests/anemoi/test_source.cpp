// SPDX-License-Identifier: Apache-2.0
// No value of a configuration is passed over in silence.
#include "anemoi/source.h"

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using anemoi::Json;
using anemoi::Place;
using anemoi::Source;
using anemoi::Verdict;

TEST_CASE("what nobody looked at is named, whole sections at once", "[anemoi]") {
  const Source source(Json::parse(
      R"({"a": {"b": 1, "c": {"d": 2, "e": [3, 4]}}, "f": {"g": 5, "h": 6}, "n": null,
          "s": "${a.b}"})"));
  const Place root = source.root();
  REQUIRE(root["a"]["b"].integer() == 1);
  REQUIRE(root["f"]["g"].number() == 5.0);
  REQUIRE(root["a"]["none"]["of"]["these"].text("x") == "x");
  root["f"]["h"].no_effect("is a test");
  const auto remarks = source.remarks();
  REQUIRE(remarks.size() == 4);
  REQUIRE(remarks[0].path == "f.h");
  REQUIRE(remarks[0].verdict == Verdict::kNoEffect);
  REQUIRE(remarks[1].path == "a.c");
  REQUIRE(remarks[1].verdict == Verdict::kNotHonoured);
  REQUIRE(remarks[1].value["e"][1] == 4);
  REQUIRE(remarks[2].path == "n");
  REQUIRE(remarks[2].verdict == Verdict::kNoEffect);
  REQUIRE(remarks[3].path == "s");
}

TEST_CASE("values of a wrong type are refused with their path", "[anemoi]") {
  const Source source(Json::parse(
      R"({"a": {"t": "x", "f": 1.5, "i": 3.0, "m": "???", "r": "${no.such}", "l": [1, "x"],
          "huge": 1e300}})"));
  const Place a = source.root()["a"];
  REQUIRE(a["i"].integer() == 3);
  REQUIRE_THROWS_WITH(a["t"].number(), ContainsSubstring("'a.t': got \"x\", expected is a number"));
  REQUIRE_THROWS_WITH(a["f"].integer(), ContainsSubstring("a.f"));
  REQUIRE_THROWS_WITH(a["huge"].integer(), ContainsSubstring("a.huge"));
  REQUIRE_THROWS_WITH(a["t"].boolean(), ContainsSubstring("true or false"));
  REQUIRE_THROWS_WITH(a["m"].text(), ContainsSubstring("???"));
  REQUIRE_THROWS_WITH(a["r"].text(), ContainsSubstring("'no.such' is not there"));
  REQUIRE_THROWS_WITH(a.whole(), ContainsSubstring("a.m"));
  REQUIRE_THROWS_WITH(a["l"].numbers(), ContainsSubstring("a.l.1"));
  REQUIRE_THROWS_WITH(a["none"].integer(), ContainsSubstring("is missing"));
  REQUIRE_THROWS_WITH(a["t"]["below"], ContainsSubstring("a.t"));
  REQUIRE_THROWS_WITH(a["t"].members(), ContainsSubstring("a.t"));
}

TEST_CASE("values that are compared still have to be looked at", "[anemoi]") {
  const Source source(Json::parse(
      R"({"a": {"k": 1, "new": 2}, "b": {"k": 1, "new": 2, "none": null}, "c": {"k": 2},
          "d": null})"));
  const Place a = source.root()["a"];
  REQUIRE(a["k"].integer() == 1);
  for (const char* key : {"a", "b", "c", "d", "e"})
    source.root()[key].expect_like(a, "is like a");
  std::vector<std::string> paths;
  for (const auto& remark : source.remarks()) {
    REQUIRE(remark.verdict == Verdict::kNotHonoured);
    paths.push_back(remark.path);
  }
  REQUIRE(paths == std::vector<std::string>{"c", "d", "e", "a.new"});
}

TEST_CASE("a value that is meant anyway is not worth a word", "[anemoi]") {
  const Source source(Json::parse(R"({"a": 1, "b": 1.0, "c": 2, "d": null})"));
  for (const char* key : {"a", "b", "c", "d", "e"})
    source.root()[key].expect(1, "is 1");
  REQUIRE(source.remarks().size() == 1);
  REQUIRE(source.remarks()[0].path == "c");
}
