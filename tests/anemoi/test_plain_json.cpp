// SPDX-License-Identifier: Apache-2.0
#include "anemoi/plain_json.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/anemoi/torch_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using test::pickled;
using test::pickled_dict;
using test::pickled_object;

namespace {

std::string json_of(const std::string& pickle) {
  const std::string bytes = "\x80\x02" + pickle + ".";
  const PickleTree tree(bytes, "'file'");
  return anemoi::plain_json(tree.root(), "'file'").dump();
}

}  // namespace

TEST_CASE("plain values of Python are JSON, whatever else is null") {
  const std::string list =
      "](" + pickled(1) + "\x88NG?\xf0" + std::string(6, '\0') + pickled("x") + "e";
  REQUIRE(json_of(list) == R"([1,true,null,1.0,"x"])");
  REQUIRE(json_of(pickled_dict({{"a", pickled(1)}, {"b", list}})) ==
          R"({"a":1,"b":[1,true,null,1.0,"x"]})");
  REQUIRE(json_of("}" + pickled(3) + pickled("c") + "s") == R"({"3":"c"})");
  REQUIRE(json_of(pickled_object("datetime", "timedelta", "}")) == "null");
  REQUIRE(json_of(pickled("\xff")) == "null");
}

TEST_CASE("containers and nodes of OmegaConf, paths, and dictionaries of other classes") {
  const auto node = [](const std::string& value) {
    return pickled_object("omegaconf.nodes", "AnyNode", pickled_dict({{"_val", value}}));
  };
  const std::string list = pickled_object(
      "omegaconf.listconfig", "ListConfig",
      pickled_dict({{"_content", "](" + node(pickled(1)) + node("N") + "e"}, {"_parent", "N"}}));
  const std::string dict =
      pickled_object("omegaconf.dictconfig", "DictConfig",
                     pickled_dict({{"_content", pickled_dict({{"a", list}})}}));
  REQUIRE(json_of(dict) == R"({"a":[1,null]})");
  const std::string path = test::pickled_class("pathlib", "PosixPath") + "(" + pickled("/") +
                           pickled("data") + pickled("x.zarr") + "tR";
  REQUIRE(json_of(path) == R"("/data/x.zarr")");
  const std::string other = test::pickled_class("anemoi.utils.config", "DotDict") + ")\x81" +
                            pickled("k") + pickled(1) + "s";
  REQUIRE(json_of(other) == R"({"k":1})");
}

TEST_CASE("values within themselves, and too many of them, are errors") {
  const std::string first(1, '\0');
  REQUIRE_THROWS_WITH(json_of("]q" + first + "h" + first + "a"),
                      ContainsSubstring("'file' has a configuration that is larger or deeper"));
  // Each of 7 levels holds the one before ten times.
  std::string laughs = "](" + pickled("ha") + "eq" + first;
  for (char level = 0; level < 7; ++level) {
    laughs += "0](";
    for (int i = 0; i < 10; ++i)
      laughs += {'h', level};
    laughs += {'e', 'q', static_cast<char>(level + 1)};
  }
  REQUIRE_THROWS_AS(json_of(laughs), DataError);
}
