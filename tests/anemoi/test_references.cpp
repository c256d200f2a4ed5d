// SPDX-License-Identifier: Apache-2.0
// References stand for values, sections and parts of texts; what leads nowhere is noted.
#include "anemoi/references.h"

#include <cstdlib>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using Json = nlohmann::ordered_json;

TEST_CASE("references are replaced by what they stand for", "[anemoi]") {
  ::setenv("AIFS_TEST_NODES", "12", 1);
  const auto result = anemoi::resolve_references(Json::parse(R"({
    "data": {"resolution": "o96", "frequency": "6h", "copy": "${.frequency}"},
    "input": {"dataset": "era5-${data.resolution}-${data.frequency}.zarr"},
    "loader": {"dataset": "${input.dataset}"},
    "graph": {"attributes": {"a": {"norm": "${data.frequency}"}},
        "nodes": {"x": "${graph.attributes}"}},
    "list": [10, {"k": "${list[0]}"}],
    "through": "${graph.nodes.x.a.norm}",
    "relative": {"inner": {"up": "${..beside}"}, "beside": true},
    "nested": "${data.${which}}",
    "which": "resolution",
    "env": "${oc.env:AIFS_TEST_NODES}",
    "number": "${oc.decode:${oc.env:AIFS_TEST_NODES}}",
    "otherwise": "${oc.env:AIFS_TEST_NOT_SET,3}"
  })"));
  REQUIRE(result.failures.empty());
  const Json& tree = result.tree;
  REQUIRE(tree["data"]["copy"] == "6h");
  REQUIRE(tree["loader"]["dataset"] == "era5-o96-6h.zarr");
  REQUIRE(tree["graph"]["nodes"]["x"]["a"]["norm"] == "6h");
  REQUIRE(tree["list"][1]["k"] == 10);
  REQUIRE(tree["through"] == "6h");
  REQUIRE(tree["relative"]["inner"]["up"] == true);
  REQUIRE(tree["nested"] == "o96");
  REQUIRE(tree["env"] == "12");
  REQUIRE(tree["number"] == 12);
  REQUIRE(tree["otherwise"] == 3);
  REQUIRE(result.referenced.contains("graph.attributes"));
  REQUIRE(result.referenced.contains("input.dataset"));
}

TEST_CASE("references that lead nowhere are noted and stay as they are", "[anemoi]") {
  const auto result = anemoi::resolve_references(Json::parse(R"({
    "a": "${b.c}", "self": "${self}", "one": "${two}", "two": "${one}",
    "whole": {"part": "${whole}"}, "open": "x${a", "empty": "${}", "function": "${eval:1+1}",
    "out": "${...x}", "env": "${oc.env:AIFS_TEST_NOT_SET}/x", "section": "x${whole2}",
    "whole2": {"k": 1}, "copy": "${holder}", "holder": {"bad": "${b.c}"}
  })"));
  for (const char* path : {"a", "self", "one", "two", "whole.part.part", "open", "empty",
                           "function", "out", "env", "section", "copy.bad", "holder.bad"}) {
    INFO(path);
    REQUIRE(result.failures.contains(path));
  }
  REQUIRE(result.failures.size() == 13);
  REQUIRE_THAT(result.failures.at("a"), ContainsSubstring("'b.c' is not there"));
  REQUIRE_THAT(result.failures.at("env"), ContainsSubstring("AIFS_TEST_NOT_SET"));
  REQUIRE(result.tree["a"] == "${b.c}");
}

TEST_CASE("what is relative in a referenced value is relative to where that stands", "[anemoi]") {
  const auto result = anemoi::resolve_references(Json::parse(R"({
    "val": 9, "a": {"x": {"ref": "${.val}", "text": "v${..val}", "bad": "${.none}", "val": 1},
        "val": 2},
    "section": "${a.x}", "value": "${a.x.ref}", "deep": {"er": {"value": "${a.x.text}"}},
    "list": ["${a.x}"], "alias": {"x": "${..a.x}", "val": 7}, "through": "${alias.x.ref}",
    "none": "${a.x.bad}"
  })"));
  const Json& tree = result.tree;
  REQUIRE(tree["section"]["ref"] == 1);
  REQUIRE(tree["section"]["text"] == "v2");
  REQUIRE(tree["value"] == 1);
  REQUIRE(tree["deep"]["er"]["value"] == "v2");
  REQUIRE(tree["list"][0]["ref"] == 1);
  REQUIRE(tree["through"] == 1);
  std::vector<std::string> failed;
  for (const auto& [path, what] : result.failures)
    failed.push_back(path);
  REQUIRE(failed ==
          std::vector<std::string>{"a.x.bad", "alias.x.bad", "list.0.bad", "none", "section.bad"});
}

TEST_CASE("references cannot stand for more than any memory has room for", "[anemoi]") {
  Json lists, texts;
  lists["a0"] = Json::array({1, 2, 3, 4, 5, 6, 7, 8});
  texts["a0"] = "0123456789";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "${a" + std::to_string(i - 1) + "}";
    Json list = Json::array();
    std::string text;
    for (int k = 0; k < 8; ++k) {
      list.push_back(before);
      text += before;
    }
    lists["a" + std::to_string(i)] = list;
    texts["a" + std::to_string(i)] = text;
  }
  REQUIRE_THROWS_AS(anemoi::resolve_references(lists), ConfigError);
  REQUIRE_THROWS_AS(anemoi::resolve_references(texts), ConfigError);
  std::string many, nested, some;
  for (int i = 0; i < 50'000; ++i) {
    many += "${x}";
    nested += "${";
  }
  for (int i = 0; i < 90; ++i)
    some += "${x}-";
  REQUIRE_THROWS_WITH(anemoi::resolve_references({{"x", 1}, {"many", many}}),
                      ContainsSubstring("'many': holds 50000 references"));
  REQUIRE_THROWS_AS(anemoi::resolve_references({{"nested", nested + std::string(50'000, '}')}}),
                    ConfigError);
  const auto result = anemoi::resolve_references({{"x", 1}, {"some", some}});
  REQUIRE(result.tree["some"].get<std::string>().starts_with("1-1-1-"));
  REQUIRE(result.tree["some"].get<std::string>().size() == 180);
  Json chain;
  for (int i = 0; i < 2000; ++i)
    chain["c" + std::to_string(i)] = "${c" + std::to_string(i + 1) + "}";
  REQUIRE(anemoi::resolve_references(chain).failures.size() == 2000);
}
