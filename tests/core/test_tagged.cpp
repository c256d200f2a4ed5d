// SPDX-License-Identifier: Apache-2.0
#include "core/tagged.h"

#include <nlohmann/json.hpp>

#include "core/file_io.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using config::Json;

namespace {

struct Shape {
  virtual ~Shape() = default;
  virtual void bind(config::Binder&) {}
  virtual double area() const = 0;
  static const std::vector<config::Kind<Shape>>& kinds();
};

struct Square : Shape {
  double side = 1.0;
  void bind(config::Binder& b) override { b.number("side", side, {.min = 0.0}, {"its side"}); }
  double area() const override { return side * side; }
};

struct Size {
  double width = 1.0;
  std::string file;
  void bind(config::Binder& b) {
    b.number("width", width, {}, {"its width"});
    b.text("file", file, {"a file"}, config::TextKind::kPath);
  }
};

struct Plate : Shape {
  double side = 1.0;
  Size size;
  void bind(config::Binder& b) override {
    b.number("side", side, {.min = 0.0}, {"its side"});
    b.section("size", size, {"its size"});
  }
  double area() const override { return side * size.width; }
};

struct Point : Shape {
  double area() const override { return 0.0; }
};

const std::vector<config::Kind<Shape>>& Shape::kinds() {
  static const std::vector<config::Kind<Shape>> all{config::kind<Shape, Square>("square"),
                                                    config::kind<Shape, Plate>("plate"),
                                                    config::kind<Shape, Point>("point")};
  return all;
}

enum class Colour { kGrey, kRed };
constexpr auto enum_table(Colour) {
  using enum Colour;
  return std::to_array<EnumName<Colour>>({{kGrey, "grey"}, {kRed, "red"}});
}

struct Drawing {
  config::Tagged<Shape> shape;
  double weight = 1.0;
  void bind(config::Binder& b) {
    shape.bind(b, "kind", {"a shape"});
    b.number("weight", weight, {}, {"of any shape"});
    b.formerly("mass");
  }
};

struct Page {
  Drawing drawing;
  std::vector<Drawing> more;
  Colour colour = Colour::kGrey;
  double depth = 1.0;
  void bind(config::Binder& b) {
    b.section("drawing", drawing, {"a drawing"});
    b.list("more", more, {"more of them"});
    b.tag("colour", colour, {"of the ink"});
    b.number("depth", depth, {}, {"how deep"});
    b.read_by({"red"});
  }
};

Page parse(const std::string& text) {
  Page page;
  config::read(page, config::parse_json(text, "test"), "", {});
  return page;
}

std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const ConfigError& error) {
    return std::string(error.what()) + " / " + error.hint();
  }
  return "no error";
}

Json written(Page page) {
  return config::write_object(config::fields_of(page));
}

}  // namespace

TEST_CASE("the kind says which options are read, wherever it stands", "[tagged]") {
  REQUIRE(parse("{}").drawing.shape.name() == "square");
  const Page page = parse(R"({"drawing": {"side": 3, "size": {"width": 2}, "kind": "plate"},
                              "more": [{"side": 2}, {"kind": "point"}],
                              "colour": "red", "depth": 5})");
  REQUIRE(page.drawing.shape->area() == 6.0);
  REQUIRE(page.more.at(0).shape->area() == 4.0);
  REQUIRE(page.more.at(1).shape.as<Point>());
  REQUIRE_FALSE(page.more.at(1).shape.as<Square>());
  REQUIRE(page.depth == 5.0);
}

TEST_CASE("an option of another kind is refused, with those of this one", "[tagged]") {
  REQUIRE_THAT(error_of(R"({"drawing": {"size": {}}})"),
               ContainsSubstring("'drawing.size': is an option of plate, not of square / the "
                                 "options of square are side"));
  REQUIRE_THAT(error_of(R"({"more": [{}, {"kind": "point", "side": 1}]})"),
               ContainsSubstring("'more.1.side': is an option of square, plate, not of point / "
                                 "point has no options of its own"));
  REQUIRE_THAT(error_of(R"({"depth": 1})"), ContainsSubstring("'depth': is an option of red"));
  REQUIRE_THAT(error_of(R"({"drawing": {"syde": 1}})"),
               ContainsSubstring("'drawing.syde': no such key / nearest: 'side'"));
  REQUIRE_THAT(error_of(R"({"drawing": {"kind": "cube"}})"),
               ContainsSubstring("allowed is one of square | plate | point"));
  REQUIRE(error_of(R"({"drawing": {"size": null}, "depth": null})") == "no error");
}

TEST_CASE("a former key is read as the present one, but not beside it", "[tagged]") {
  REQUIRE(parse(R"({"drawing": {"mass": 4}})").drawing.weight == 4.0);
  REQUIRE_THAT(error_of(R"({"drawing": {"mass": 4, "weight": 4}})"),
               ContainsSubstring("'drawing.mass': is the former name of 'weight'"));
}

TEST_CASE("what is written are the options of the kind, which read back as they were", "[tagged]") {
  const Page page = parse(R"({"drawing": {"kind": "plate", "side": 3}, "more": [{"side": 2}]})");
  const Json json = written(page);
  REQUIRE(json["drawing"]["size"]["width"] == 1.0);
  REQUIRE_FALSE(json["more"][0].contains("size"));
  REQUIRE_FALSE(json.contains("depth"));
  REQUIRE(written(parse(json.dump())) == json);
}

TEST_CASE("copies share nothing", "[tagged]") {
  const config::Tagged<Shape> one{"plate"};
  config::Tagged<Shape> other = one;
  Square square;
  square.side = 3.0;
  other.set(square);
  REQUIRE(one.name() == "plate");
  REQUIRE(other.name() == "square");
  REQUIRE(other->area() == 9.0);
  REQUIRE(config::Tagged<Shape>(square)->area() == 9.0);
  REQUIRE_THROWS_AS(other.choose("cube"), Error);
}

TEST_CASE("what an older program wrote loses what its kinds do not read, and gets what they lack",
          "[tagged]") {
  Page page;
  const auto fields = config::fields_of(page);
  const Json old = Json::parse(
      R"({"drawing": {"kind": "point", "side": 1, "mass": 2, "own": 3},
          "more": [{"side": 1, "size": {"width": 2}}], "colour": "grey", "depth": 1})");
  const Json kept = config::without_unread(fields, old);
  REQUIRE(kept ==
          Json::parse(
              R"({"drawing": {"kind": "point", "weight": 2, "own": 3}, "more": [{"side": 1}],
          "colour": "grey"})"));
  const Json whole = config::with_defaults(fields, kept);
  REQUIRE(whole["drawing"] == kept["drawing"]);
  REQUIRE(whole["more"] == Json::parse(R"([{"kind": "square", "side": 1, "weight": 1.0}])"));
  REQUIRE(whole["colour"] == "grey");
  REQUIRE(config::with_defaults(fields, Json::object()) == config::write_object(fields));
}

TEST_CASE("files and overrides reach the options of every kind", "[tagged]") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "a.json",
                    R"({"drawing": {"kind": "plate", "size": {"file": "f"}}})");
  write_file_atomic(folder.path() / "b.json",
                    R"({"base": "a.json", "drawing": {"kind": "square", "size": null}})");
  Page page;
  const auto fields = config::fields_of(page);
  config::ReadContext context;
  Json tree = config::load_file(folder.path() / "a.json", fields);
  config::apply_override(tree, "drawing.size.width=7", fields, context);
  config::apply_override(tree, "drawing.mass=8", fields, context);
  config::read_object(fields, tree, "", context);
  REQUIRE(page.drawing.shape->area() == 7.0);
  REQUIRE(page.drawing.shape.as<Plate>()->size.file == (folder.path() / "f").string());
  REQUIRE(page.drawing.weight == 8.0);
  config::read_object(fields, config::load_file(folder.path() / "b.json", fields), "", {});
  REQUIRE(page.drawing.shape.name() == "square");
}

TEST_CASE("schema and reference say which kinds read an option", "[tagged]") {
  Page page;
  const auto fields = config::fields_of(page);
  const Json schema = config::json_schema(fields, "")["properties"]["drawing"];
  REQUIRE(schema["properties"]["side"]["description"] == "square, plate: its side");
  REQUIRE(schema["dependentSchemas"].dump() ==
          R"({"side":{"properties":{"kind":{"enum":["square","plate"]}}},)"
          R"("size":{"properties":{"kind":{"enum":["plate"]}},"required":["kind"]}})");
  const std::string text = config::markdown(fields);
  REQUIRE_THAT(text,
               ContainsSubstring("| `side` | number >= 0 | `1.0` | square, plate: its side |"));
  REQUIRE_THAT(text, ContainsSubstring("| `size` | object | see below | plate: its size |"));
}

TEST_CASE("options of all kinds can be reached, whichever is chosen", "[tagged]") {
  config::Tagged<Shape> shapes("point");
  shapes.of<Square>().side = 3.0;
  std::vector<std::string> names;
  double area = 0.0;
  std::as_const(shapes).for_each([&](const char* name, const Shape& shape) {
    names.emplace_back(name);
    area += shape.area();
  });
  REQUIRE(names == std::vector<std::string>{"square", "plate", "point"});
  REQUIRE(area == 9.0 + 1.0 + 0.0);
  shapes.for_each([](const char*, Shape& shape) {
    if (auto* plate = dynamic_cast<Plate*>(&shape)) plate->side = 5.0;
  });
  shapes.choose("plate");
  REQUIRE(shapes->area() == 5.0);
  REQUIRE(shapes.name() == "plate");
  struct Circle : Shape {
    double area() const override { return 3.0; }
  };
  REQUIRE_THROWS_AS(shapes.of<Circle>(), Error);
}
