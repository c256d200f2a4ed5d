// SPDX-License-Identifier: Apache-2.0
// Configuration files that are damaged, hostile or large: one ConfigError each, never a crash.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/config.h"
#include "core/file_io.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using config::Json;

namespace {

struct Store {
  std::string path = "none";
  std::string start;
  void bind(config::Binder& b) {
    b.text("path", path, {"a store"}, config::TextKind::kPath);
    b.text("start", start, {"first date"});
  }
};

struct Options {
  std::string name = "x";
  double rate = 1.0;
  std::vector<std::string> list;
  std::map<std::string, double> weights;
  Store store;
  void bind(config::Binder& b) {
    b.text("name", name, {"a name"});
    b.number("rate", rate, {}, {"a rate"});
    b.text_list("list", list, {"names"});
    b.number_map("weights", weights, {}, {"weights"});
    b.section("store", store, {"a store"}, "path");
  }
};

// The message of the ConfigError that loading this text gives, or "" if it loads.
std::string load_fault(const std::string& text) {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "c.json", text);
  Options options;
  try {
    config::load_file(folder.path() / "c.json", config::fields_of(options));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

Options with_overrides(const std::vector<std::string>& assignments) {
  Options options;
  const std::vector<config::Field> fields = config::fields_of(options);
  Json tree = Json::object();
  config::ReadContext context;
  for (const std::string& assignment : assignments)
    config::apply_override(tree, assignment, fields, context);
  config::read_object(fields, tree, "", context);
  return options;
}

std::string override_fault(const std::string& assignment) {
  try {
    with_overrides({assignment});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') +
         std::string(static_cast<size_t>(depth), ']');
}

}  // namespace

TEST_CASE("text that is no JSON object is refused with the name of the file", "[config_file]") {
  for (const char* text :
       {"", "{", "[]", "5", "{\"a\":1,}", "\xff\xfe{}", "{\"name\": \"\\ud800\"}",
        "{\"rate\": 1e999}", "{\"name\":\"a\",\"name\":\"b\"}"}) {
    INFO(text);
    REQUIRE_THAT(load_fault(text), ContainsSubstring("c.json"));
  }
}

TEST_CASE("what is wrong with JSON is said in our words, by line and column", "[config_file]") {
  const std::string fault = load_fault("{\"name\": \"a\", // comment\n \"rate\": 1,}");
  REQUIRE_THAT(fault, ContainsSubstring("line 2, column 12: '}' does not belong there"));
  for (const char* text : {"", "{", "{\"a\":1,}", "\xff\xfe{}", "{\"name\": \"\\ud800\"}",
                           "{\"rate\": 1e999}", "{\"rate\" 1}", "nan"}) {
    REQUIRE_THAT(load_fault(text), !ContainsSubstring("exception") &&
                                       !ContainsSubstring("parse error") &&
                                       !ContainsSubstring("syntax error"));
  }
}

TEST_CASE("a file of another kind than a configuration is called by its kind", "[config_file]") {
  REQUIRE_THAT(load_fault("PK\x03\x04 and more"), ContainsSubstring("c.json' is a zip archive"));
  REQUIRE_THAT(load_fault("data:\n  kind: anemoi\n"), ContainsSubstring("is not JSON: line 1"));
}

TEST_CASE("brackets without end are refused, not fatal", "[config_file]") {
  REQUIRE_THAT(load_fault("{\"list\":" + nested(300000) + "}"), ContainsSubstring("brackets"));
  REQUIRE_THAT(override_fault("list=" + nested(300000)), ContainsSubstring("brackets"));
  REQUIRE(load_fault("{\"list\":" + nested(20) + "}").empty());  // deep, but a tree
}

TEST_CASE("texts that are not UTF-8 are refused wherever they come from", "[config_file]") {
  REQUIRE_THAT(override_fault("name=\xff"), ContainsSubstring("UTF-8"));
  REQUIRE_THAT(override_fault("weights.\xff=1"), ContainsSubstring("UTF-8"));
  ::setenv("AIFS_TEST_BYTES", "\xff", 1);
  REQUIRE_THAT(override_fault("name=${AIFS_TEST_BYTES}"), ContainsSubstring("UTF-8"));
  REQUIRE_THAT(load_fault("{\"name\": \"${AIFS_TEST_BYTES}\"}"), ContainsSubstring("UTF-8"));
  REQUIRE(with_overrides({"name=h\xc3\xa9llo"}).name == "h\xc3\xa9llo");
}

TEST_CASE("of several bases each lies over those before it", "[config_file]") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "a.json", R"({"name": "a", "weights": {"x": 1, "y": 1}})");
  write_file_atomic(folder.path() / "b.json", R"({"name": "b", "weights": {"y": 2}})");
  write_file_atomic(folder.path() / "c.json",
                    R"({"base": ["a.json", "b.json"], "weights": {"z": 3}})");
  Options options;
  const config::Json tree = config::load_file(folder.path() / "c.json", config::fields_of(options));
  REQUIRE(tree == config::Json::parse(R"({"name": "b", "weights": {"x": 1, "y": 2, "z": 3}})"));
  write_file_atomic(folder.path() / "d.json", R"({"base": ["a.json", 7]})");
  REQUIRE_THROWS_WITH(config::load_file(folder.path() / "d.json", config::fields_of(options)),
                      ContainsSubstring("'base'"));
}

TEST_CASE("files that name themselves as their base are refused", "[config_file]") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "a.json", R"({"base": "b.json"})");
  write_file_atomic(folder.path() / "b.json", R"({"base": "a.json"})");
  Options options;
  REQUIRE_THROWS_AS(config::load_file(folder.path() / "a.json", config::fields_of(options)),
                    ConfigError);
}

TEST_CASE("a key inside a section given by its shorthand can be overridden", "[config_file]") {
  const Options options = with_overrides({"store=/a.zarr", "store.start=2020"});
  REQUIRE(options.store.path == "/a.zarr");
  REQUIRE(options.store.start == "2020");
}

TEST_CASE("an override that is not JSON is the text itself", "[config_file]") {
  REQUIRE(with_overrides({"name=12"}).name == "12");
  REQUIRE(with_overrides({"name=a b=c"}).name == "a b=c");
  REQUIRE(with_overrides({"name="}).name.empty());
  REQUIRE(with_overrides({"rate=1e-3"}).rate == 1e-3);
  REQUIRE_THAT(override_fault("rate=1e999"), ContainsSubstring("'rate'"));
}
