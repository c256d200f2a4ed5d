// SPDX-License-Identifier: Apache-2.0
#include "core/config.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/file_io.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using config::Json;

namespace {

enum class Colour { kRed, kGreen };

constexpr auto enum_table(Colour) {
  using enum Colour;
  return std::to_array<EnumName<Colour>>({{kRed, "red"}, {kGreen, "green"}});
}

struct Item {
  std::string file;
  double weight = 1.0;
  void bind(config::Binder& b) {
    b.text("file", file, {"a file"}, config::TextKind::kPath);
    b.number("weight", weight, {.min = 0.0}, {"its weight"});
  }
};

struct Inner {
  int64_t count = 3;
  Colour colour = Colour::kRed;
  std::vector<Item> items;
  void bind(config::Binder& b) {
    b.integer("count", count, {.min = 1, .max = 9}, {"how many", "pieces"});
    b.choice("colour", colour, {"which"});
    b.list("items", items, {"the items"});
  }
  void validate(const std::string& path) const {
    if (count == 7) throw ConfigError(path + ".count", "7 is not liked");
  }
};

struct Named {
  std::string file, mode = "plain";
  void bind(config::Binder& b) {
    b.text("file", file, {"a file"}, config::TextKind::kPath);
    b.text("mode", mode, {"a mode"});
  }
};

struct Outer {
  Named named;
  std::string name = "x";
  std::string period = "6h";
  std::string folder;
  bool flag = false;
  std::map<std::string, double> weights{{"a", 1.0}};
  std::vector<std::string> files, times;
  Inner inner;
  void bind(config::Binder& b) {
    b.text("name", name, {"a name"});
    b.text("period", period, {"a time"}, config::TextKind::kDuration);
    b.text("folder", folder, {"a folder"}, config::TextKind::kPath);
    b.boolean("flag", flag, {"yes or no"});
    b.number_map("weights", weights, {}, {"weights"});
    b.text_list("files", files, {"files"}, config::TextKind::kPath);
    b.text_list("times", times, {"times"}, config::TextKind::kDuration);
    b.section("inner", inner, {"the inner part"});
    b.section("named", named, {"a file with options"}, "file");
  }
};

Outer parse(const std::string& text) {
  Outer options;
  config::read(options, config::parse_json(text, "test"), "", {});
  return options;
}

std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const ConfigError& error) {
    return std::string(error.what()) + " / " + error.hint();
  }
  return "no error";
}

}  // namespace

TEST_CASE("values, comments and defaults are read", "[config]") {
  const Outer o = parse(R"({
    "name": "y",  // a comment
    "inner": {"count": 5, "colour": "green", "items": [{"weight": 2}]}, /* another */
    "weights": {"b": 0.5}, "flag": null
  })");
  REQUIRE(o.name == "y");
  REQUIRE(o.inner.count == 5);
  REQUIRE(o.inner.colour == Colour::kGreen);
  REQUIRE(o.inner.items.at(0).weight == 2.0);
  REQUIRE(o.weights == std::map<std::string, double>{{"b", 0.5}});
  REQUIRE(o.flag == false);
}

TEST_CASE("every mistake names its path and what was allowed", "[config]") {
  REQUIRE_THAT(error_of(R"({"inner": {"cuont": 5}})"),
               ContainsSubstring("'inner.cuont': no such key / nearest: 'count'"));
  REQUIRE_THAT(error_of(R"({"inner": {"count": 10}})"),
               ContainsSubstring("'inner.count': got 10, allowed is integer from 1 to 9"));
  REQUIRE_THAT(error_of(R"({"inner": {"count": 1.5}})"),
               ContainsSubstring("'inner.count': got 1.5"));
  REQUIRE_THAT(error_of(R"({"inner": {"count": "5"}})"), ContainsSubstring("got \"5\""));
  REQUIRE_THAT(error_of(R"({"inner": {"colour": "gren"}})"),
               ContainsSubstring("allowed is one of red | green / nearest: 'green'"));
  REQUIRE_THAT(error_of(R"({"inner": {"items": [{}, {"weight": -1}]}})"),
               ContainsSubstring("'inner.items.1.weight': got -1, allowed is number >= 0"));
  REQUIRE_THAT(error_of(R"({"inner": 4})"), ContainsSubstring("'inner': got 4"));
  REQUIRE_THAT(error_of(R"({"period": "soon"})"),
               ContainsSubstring("'period': 'soon' is not a dur"));
  REQUIRE_THAT(error_of(R"({"flag": 1})"), ContainsSubstring("true or false"));
  REQUIRE_THAT(error_of(R"({"inner": {"count": 7}})"),
               ContainsSubstring("'inner.count': 7 is not liked"));
  REQUIRE_THAT(error_of(R"({"name": "a", "name": "b"})"), ContainsSubstring("'name' twice"));
  REQUIRE_THAT(error_of(R"({"name": )"), ContainsSubstring("line 1"));
  REQUIRE_THAT(error_of(R"({"inner": {"count": 18446744073709551615}})"),
               ContainsSubstring("inner.count"));
}

TEST_CASE("what is written reads back as the same", "[config]") {
  Outer o = parse(R"({"inner": {"items": [{"file": "/a", "weight": 3}]}, "flag": true})");
  const Json written = config::write_object(config::fields_of(o));
  Outer again;
  config::read(again, written, "", {});
  REQUIRE(config::write_object(config::fields_of(again)) == written);
  REQUIRE(written["inner"]["colour"] == "red");
}

TEST_CASE("bases merge deeply and paths are taken from their own file", "[config]") {
  const test::TemporaryFolder folder;
  make_directories(folder.path() / "sub");
  write_file_atomic(
      folder.path() / "sub" / "base.json",
      R"({"name": "base", "folder": "data", "inner": {"count": 2, "colour": "green"}})");
  write_file_atomic(
      folder.path() / "top.json",
      R"({"base": "sub/base.json", "inner": {"count": 4, "items": [{"file": "f"}]}})");
  Outer o;
  const auto fields = config::fields_of(o);
  Json tree = config::load_file(folder.path() / "top.json", fields);
  config::ReadContext context;
  config::apply_override(tree, "inner.items.0.weight=0.5", fields, context);
  config::apply_override(tree, "name=12", fields, context);
  config::read(o, tree, "", context);
  REQUIRE(o.name == "12");
  REQUIRE(o.inner.count == 4);
  REQUIRE(o.inner.colour == Colour::kGreen);
  REQUIRE(o.folder == (folder.path() / "sub" / "data").string());
  REQUIRE(o.inner.items.at(0).file == (folder.path() / "f").string());
  REQUIRE(o.inner.items.at(0).weight == 0.5);
}

TEST_CASE("a text stands for an object where a section has a shorthand", "[config]") {
  REQUIRE(parse(R"({"named": "/x"})").named.file == "/x");
  REQUIRE(parse(R"({"named": {"file": "/x", "mode": "y"}})").named.mode == "y");
  REQUIRE_THAT(error_of(R"({"named": 3})"), ContainsSubstring("'named': got 3"));
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "a.json", R"({"named": "f"})");
  Outer o;
  config::read(o, config::load_file(folder.path() / "a.json", config::fields_of(o)), "", {});
  REQUIRE(o.named.file == (folder.path() / "f").string());
}

namespace {

struct Shelf {
  std::vector<std::pair<std::string, Item>> boxes;
  void bind(config::Binder& b) { b.map("boxes", boxes, {"a box"}); }
};

}  // namespace

TEST_CASE("a map has objects under names, in their order", "[config]") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "c.json",
                    R"({"boxes": {"z": {"file": "x", "weight": 2}, "a": {}, "none": null}})");
  Shelf shelf;
  const auto fields = config::fields_of(shelf);
  Json tree = config::load_file(folder.path() / "c.json", fields);
  config::ReadContext context;
  config::apply_override(tree, "boxes.a.weight=3", fields, context);
  config::apply_override(tree, R"(boxes.new={"weight": 4})", fields, context);
  REQUIRE_THROWS_AS(config::apply_override(tree, "boxes.a.size=3", fields, context), ConfigError);
  config::read_object(fields, tree, "", context);
  REQUIRE(shelf.boxes.size() == 3);
  REQUIRE(shelf.boxes[0].first == "z");
  REQUIRE(shelf.boxes[0].second.file == (folder.path() / "x").string());
  REQUIRE(shelf.boxes[1].second.weight == 3.0);
  REQUIRE(shelf.boxes[2].first == "new");
  const Json written = config::write_object(config::fields_of(shelf));
  REQUIRE(written["boxes"]["a"]["weight"] == 3.0);
  const auto fails = [&](const char* text, const char* words) {
    const auto read = [&] { config::read_object(fields, Json::parse(text), "", context); };
    REQUIRE_THROWS_WITH(read(), ContainsSubstring(words));
  };
  fails(R"({"boxes": []})", "'boxes'");
  fails(R"({"boxes": {"a": 1}})", "'boxes.a'");
  fails(R"({"boxes": {"a": {"size": 1}}})", "'boxes.a.size'");
  const Json schema = config::json_schema(fields, "");
  REQUIRE(schema["properties"]["boxes"]["additionalProperties"]["properties"].contains("weight"));
  REQUIRE_THAT(config::markdown(fields), !ContainsSubstring("`size`"));
}

TEST_CASE("an integer is a number of hours, and a text alone is a list of one", "[config]") {
  REQUIRE(parse(R"({"period": 6})").period == "6");
  REQUIRE(parse(R"({"times": 12})").times.empty() == false);
  REQUIRE(parse(R"({"times": "12h"})").times == std::vector<std::string>{"12h"});
  REQUIRE(parse(R"({"times": [6, "1d"]})").times == std::vector<std::string>{"6", "1d"});
  REQUIRE(parse(R"({"files": null})").files.empty());
  REQUIRE(parse(R"({"files": "/a"})").files == std::vector<std::string>{"/a"});
  for (const char* bad :
       {R"({"period": 6.5})", R"({"period": true})", R"({"period": [6]})", R"({"times": "soon"})",
        R"({"times": [null]})", R"({"times": {}})", R"({"files": 3})", R"({"name": 3})"}) {
    INFO(bad);
    REQUIRE_THAT(error_of(bad), ContainsSubstring("'"));
    REQUIRE_THAT(error_of(bad), !ContainsSubstring("no error"));
  }
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "a.json", R"({"files": "f"})");
  Outer o;
  config::read(o, config::load_file(folder.path() / "a.json", config::fields_of(o)), "", {});
  REQUIRE(o.files == std::vector<std::string>{(folder.path() / "f").string()});
  const Json schema = config::json_schema(config::fields_of(o), "test")["properties"];
  REQUIRE(schema["period"]["type"] == Json::array({"string", "integer"}));
  REQUIRE(schema["files"]["anyOf"][1]["type"] == "string");
}

TEST_CASE("bad overrides and bad bases are refused", "[config]") {
  Outer o;
  const auto fields = config::fields_of(o);
  Json tree = Json::object();
  config::ReadContext context;
  for (const char* bad : {"name", "=3", "nome=3", "inner.items.0.weight=1", "inner..count=1"}) {
    INFO(bad);
    REQUIRE_THROWS_AS(config::apply_override(tree, bad, fields, context), ConfigError);
  }
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "self.json", R"({"base": "self.json"})");
  REQUIRE_THROWS_WITH(config::load_file(folder.path() / "self.json", fields),
                      ContainsSubstring("bases"));
  REQUIRE_THROWS_WITH(config::load_file(folder.path() / "none.json", fields),
                      ContainsSubstring("none.json"));
}

TEST_CASE("environment variables are expanded in texts", "[config]") {
  const test::TemporaryFolder folder;
  ::setenv("AIFS_TEST_NAME", "ada", 1);
  ::unsetenv("AIFS_TEST_NONE");
  write_file_atomic(folder.path() / "a.json",
                    R"({"name": "${AIFS_TEST_NAME}-${AIFS_TEST_NONE:-x}-$$"})");
  Outer o;
  config::read(o, config::load_file(folder.path() / "a.json", config::fields_of(o)), "", {});
  REQUIRE(o.name == "ada-x-$");
  write_file_atomic(folder.path() / "b.json",
                    R"({"inner": {"items": [{"file": "${AIFS_TEST_NONE}"}]}})");
  REQUIRE_THROWS_WITH(config::load_file(folder.path() / "b.json", config::fields_of(o)),
                      ContainsSubstring("inner.items.0.file"));
}

TEST_CASE("schema and reference follow from the same description", "[config]") {
  Outer o;
  const auto fields = config::fields_of(o);
  const Json schema = config::json_schema(fields, "test");
  REQUIRE(schema["properties"]["inner"]["properties"]["count"]["maximum"] == 9);
  REQUIRE(schema["properties"]["inner"]["additionalProperties"] == false);
  REQUIRE(schema["properties"]["name"]["default"] == "x");
  REQUIRE_THAT(config::markdown(fields),
               ContainsSubstring("| `count` | integer from 1 to 9 | `3` | how many [pieces] |"));
}

namespace {

// Options of which each kind uses some.
struct Shape {
  std::string kind = "round";
  std::optional<double> radius;
  double side = 1.0;
  void bind(config::Binder& b) {
    b.text("kind", kind, {"a kind"});
    b.number_or_null("radius", radius, {.min = 0.0}, {"of round ones; null: any"});
    b.number("side", side, {}, {"of square ones"});
  }
  void validate(const std::string& path) const {
    config::refuse_unused(*this, {"kind", kind == "round" ? "radius" : "side"}, path,
                          "kind " + kind);
  }
};

Shape shape_of(const std::string& text) {
  Shape shape;
  config::read(shape, config::parse_json(text, "test"), "s", {});
  return shape;
}

}  // namespace

TEST_CASE("a number may be absent, and is written as null then", "[config]") {
  Shape shape = shape_of("{}");
  REQUIRE_FALSE(shape.radius.has_value());
  REQUIRE(config::write_object(config::fields_of(shape)).dump() ==
          R"({"kind":"round","radius":null,"side":1.0})");
  REQUIRE_FALSE(shape_of(R"({"radius": null})").radius.has_value());
  shape = shape_of(R"({"radius": 2})");
  REQUIRE(shape.radius == 2.0);
  REQUIRE(config::write_object(config::fields_of(shape))["radius"] == 2.0);
  REQUIRE_THROWS_WITH(shape_of(R"({"radius": -1})"),
                      ContainsSubstring("'s.radius': got -1, allowed is number >= 0"));
  REQUIRE_THROWS_WITH(shape_of(R"({"radius": "x"})"), ContainsSubstring("'s.radius'"));
  for (const config::Field& field : config::fields_of(shape)) {
    if (field.key != "radius") continue;
    REQUIRE(field.type == "number >= 0 or null");
    REQUIRE(field.schema().dump() == R"({"type":["number","null"],"minimum":0.0})");
  }
}

TEST_CASE("an option that the choice beside it does not use is refused", "[config]") {
  REQUIRE(shape_of(R"({"kind": "square", "side": 3})").side == 3.0);
  REQUIRE(shape_of(R"({"radius": 3, "side": 1})").radius == 3.0);  // the default says nothing
  REQUIRE_THROWS_WITH(shape_of(R"({"side": 3})"),
                      ContainsSubstring("'s.side': is not for kind round"));
  REQUIRE_THROWS_WITH(shape_of(R"({"kind": "square", "radius": 3})"),
                      ContainsSubstring("'s.radius': is not for kind square"));
}
