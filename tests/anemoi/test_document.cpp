// SPDX-License-Identifier: Apache-2.0
// Files are read, and what is wrong with them is said with the line and in our words.
#include "anemoi/document.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_io.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using Json = nlohmann::ordered_json;

namespace {

// The message of what refuses a text.
std::string refusal(const std::string& yaml, const anemoi::DocumentLimits& limits = {}) {
  try {
    anemoi::parse_yaml(yaml, "f.yaml", limits);
  } catch (const ConfigError& error) {
    INFO(error.what());
    REQUIRE(std::string(error.what()).find("yaml-cpp") == std::string::npos);
    return error.what();
  }
  return "";
}

std::string lines_of_aliases(int count) {
  std::string yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i <= count; ++i) {
    const std::string before = "*a" + std::to_string(i - 1), comma = ", ";
    yaml += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 0; k < 8; ++k)
      yaml += comma + before;
    yaml += "]\n";
  }
  return yaml;
}

}  // namespace

TEST_CASE("YAML keeps its order, and quoted texts stay texts", "[anemoi]") {
  if (!anemoi::reads_yaml()) return;
  const Json tree = anemoi::parse_yaml(
      "b: 1e-3\na: '1e-3'\nn:\nt: !!str 12\nlist: [1, \"2\", yes, 'no', ~]\nmap: {10u: 0.1, 0: "
      "[x]}\n"
      "alias: &x {k: 1}\nagain: *x\nlong: >-\n  two\n  lines\n",
      "f.yaml");
  REQUIRE(tree.dump() ==
          R"({"b":0.001,"a":"1e-3","n":null,"t":"12","list":[1,"2",true,"no",null],)"
          R"("map":{"10u":0.1,"0":["x"]},"alias":{"k":1},"again":{"k":1},"long":"two lines"})");
}

TEST_CASE("what is no sound YAML is refused with its line", "[anemoi]") {
  if (!anemoi::reads_yaml()) return;
  REQUIRE_THAT(refusal(""), ContainsSubstring("is empty"));
  REQUIRE_THAT(refusal("# nothing\n"), ContainsSubstring("is empty"));
  REQUIRE_THAT(refusal("a: 1\nb: [1, 2\n"), ContainsSubstring("f.yaml:"));
  REQUIRE_THAT(refusal("a: 1\nb: {c: 2\nd: 'x\n"), ContainsSubstring("is not YAML"));
  REQUIRE_THAT(refusal("a:\n  b: 1\n  c: 2\n  b: 3\n"), ContainsSubstring("f.yaml:4': 'b'"));
  REQUIRE_THAT(refusal("a: 1\n---\nb: 2\n"), ContainsSubstring("goes on after"));
  REQUIRE_THAT(refusal("{a: 1}\n}\nb: 2\n"), ContainsSubstring("f.yaml"));
  REQUIRE_THAT(refusal("{! \"a\": {b: 1}}}\n"), ContainsSubstring("f.yaml"));
  REQUIRE_THAT(refusal("a: !!python/object:os.system x\n"), ContainsSubstring("the tag"));
  REQUIRE_THAT(refusal("? [a, b]\n: 1\n"), ContainsSubstring("a single word"));
  REQUIRE_THAT(refusal("x: &x {a: 1}\ny: {<<: *x}\n"), ContainsSubstring("<<"));
  REQUIRE_THAT(refusal("a: *b\n"), ContainsSubstring("f.yaml:1"));
  REQUIRE_THAT(refusal("a:\n\tb: 1\n"), ContainsSubstring("tab"));
  REQUIRE_THAT(refusal(std::string("a: \0x", 5)), ContainsSubstring("UTF-8"));
  REQUIRE_THAT(refusal("a: \xff\xfe\n"), ContainsSubstring("UTF-8"));
}

TEST_CASE("a small text that stands for a huge tree is refused", "[anemoi]") {
  if (!anemoi::reads_yaml()) return;
  REQUIRE_THAT(refusal(lines_of_aliases(12)), ContainsSubstring("aliases"));
  REQUIRE_THAT(refusal("a: &a [*a]\n"), ContainsSubstring("f.yaml"));
  const std::string deep = "a: " + std::string(5000, '[') + std::string(5000, ']');
  REQUIRE_THAT(refusal(deep), ContainsSubstring("f.yaml"));
  std::string steps = "- ";
  for (int i = 0; i < 400; ++i)
    steps += "- ";
  REQUIRE_THAT(refusal(steps + "x\n"), ContainsSubstring("levels"));
  REQUIRE_THAT(refusal("a: [1, 2, 3, 4]\n", {.values = 4}), ContainsSubstring("more than 4"));
  REQUIRE_THAT(refusal("a: 123456789\n", {.bytes = 8}), ContainsSubstring("larger"));
}

TEST_CASE("files are JSON or YAML, and hold names and values", "[anemoi]") {
  const test::TemporaryFolder folder;
  const auto write = [&](const char* name, const std::string& text) {
    write_file_atomic(folder.path() / name, text);
    return folder.path() / name;
  };
  REQUIRE(anemoi::read_document(write("a.json", R"({"a": 1} // one)"))["a"] == 1);
  REQUIRE(anemoi::read_document(write("b", "\n{\"a\": 2}"))["a"] == 2);
  REQUIRE_THROWS_WITH(anemoi::read_document(write("c.json", R"({"a": 1, "a": 2})")),
                      ContainsSubstring("twice"));
  REQUIRE_THROWS_WITH(anemoi::read_document(write("d.json", "[1]")), ContainsSubstring("a list"));
  REQUIRE_THROWS_WITH(anemoi::read_document(folder.path() / "none.yaml"),
                      ContainsSubstring("is not there"));
  REQUIRE_THROWS_WITH(anemoi::read_document(folder.path()), ContainsSubstring("is not a file"));
  if (!anemoi::reads_yaml()) {
    try {
      anemoi::read_document(write("e.yaml", "a: 1\n"));
      FAIL("a program without yaml-cpp reads no YAML");
    } catch (const ConfigError& error) {
      REQUIRE_THAT(error.what(), ContainsSubstring("built without"));
      REQUIRE_THAT(error.hint(), ContainsSubstring("OmegaConf.to_container(OmegaConf.load("));
    }
    return;
  }
  REQUIRE(anemoi::read_document(write("e.yaml", "a: 3\n"))["a"] == 3);
  REQUIRE_THROWS_WITH(anemoi::read_document(write("f.yaml", "- a\n")), ContainsSubstring("a list"));
  REQUIRE_THROWS_WITH(anemoi::read_document(write("g.yml", "text\n")),
                      ContainsSubstring("a single value"));
}
