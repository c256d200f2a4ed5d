// SPDX-License-Identifier: Apache-2.0
#include "core/integer_map.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using config::Json;

namespace {

struct Options {
  std::map<std::string, int64_t> widths{{"a", 1}};
  void bind(config::Binder& b) {
    config::integer_map(b, "widths", widths, {.min = 0, .max = 9}, {"widths"});
  }
};

Options read(const char* text) {
  Options options;
  config::read(options, Json::parse(text), "o", {});
  return options;
}

}  // namespace

TEST_CASE("a map of integers is read whole and written as it is", "[integer_map]") {
  Options options = read(R"({"widths": {"b": 2, "c": 0}})");
  REQUIRE(options.widths == std::map<std::string, int64_t>{{"b", 2}, {"c", 0}});
  REQUIRE(config::write_object(config::fields_of(options)).dump() == R"({"widths":{"b":2,"c":0}})");
  REQUIRE(read("{}").widths.at("a") == 1);
}

TEST_CASE("what is no integer within the bounds is named", "[integer_map]") {
  REQUIRE_THROWS_WITH(read(R"({"widths": {"b": 10}})"), ContainsSubstring("'o.widths.b'"));
  REQUIRE_THROWS_WITH(read(R"({"widths": {"b": 1.5}})"), ContainsSubstring("'o.widths.b'"));
  REQUIRE_THROWS_WITH(read(R"({"widths": 3})"), ContainsSubstring("'o.widths'"));
}

TEST_CASE("its schema and its type say the bounds", "[integer_map]") {
  Options options;
  const config::Field field = config::fields_of(options).front();
  REQUIRE(field.schema().dump() ==
          R"({"type":"object","additionalProperties":{"type":"integer","minimum":0,"maximum":9}})");
  REQUIRE(field.type.starts_with("map of name to integer"));
}
