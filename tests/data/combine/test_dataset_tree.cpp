// SPDX-License-Identifier: Apache-2.0
#include "data/combine/dataset_tree.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "data/options.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

DatasetTree parse(const std::string& json) {
  return parse_dataset(config::parse_json(json, "f"), "data.dataset");
}

std::string fault_of(const std::string& json) {
  try {
    parse(json);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a dataset is a name, a list, or an object of options", "[dataset_tree]") {
  REQUIRE(parse("\"a.zarr\"").dataset == "a.zarr");
  REQUIRE(parse("\"a.zarr\"").is_plain());
  REQUIRE(parse(R"({"dataset": "a", "start": 2020, "select": "t"})").is_plain());
  REQUIRE(parse(R"(["a", "b"])").source_key() == "dataset");
  REQUIRE(parse(R"({"join": ["a", "b"]})").source_key() == "join");
  REQUIRE(parse(R"({"x": "a", "y": "b"})").source_key() == "x");
  REQUIRE_FALSE(parse(R"({"dataset": "a", "thinning": 2})").is_plain());
  REQUIRE(parse(R"({"dataset": "a", "thinning": null})").is_plain());
}

TEST_CASE("mistakes are named with their place, however deep", "[dataset_tree]") {
  struct Case {
    const char *json, *path, *words;
  };
  for (const Case& c :
       {Case{R"({"join": ["a", {"dataset": "b", "colour": 1}]})", "'data.dataset.join.1.colour'",
             "no such key"},
        Case{R"({"dataset": {"cutout": ["a", {"dataset": "b", "thinning": 0}]}})",
             "'data.dataset.dataset.cutout.1.thinning'", "integer >= 1"},
        Case{R"({"join": ["a", "b"], "concat": ["a"]})", "'data.dataset.concat'", "stands beside"},
        Case{R"({"select": ["t"]})", "'data.dataset'", "names no dataset"},
        Case{R"({"dataset": "a", "min_distance_km": 3})", "'data.dataset.min_distance_km'",
             "cutout"},
        Case{R"({"dataset": "a", "adjust": "all"})", "'data.dataset.adjust'", "combination"},
        Case{R"({"dataset": ["a", "b"], "adjust": "all"})", "'data.dataset.adjust'", "combination"},
        Case{R"({"join": "a"})", "'data.dataset.join'", "list of datasets"},
        Case{R"({"join": [3, "a"]})", "'data.dataset.join.0'", "got 3"},
        Case{R"({"complement": "a"})", "'data.dataset.source'", "not given"},
        Case{R"({"dataset": "a", "shuffle": true})", "'data.dataset.shuffle'", "random order"},
        Case{R"({"dataset": "a", "skip_missing_dates": true, "expected_access": 2})",
             "'data.dataset.skip_missing_dates'", "by itself"},
        Case{R"({"dataset": "a", "frequency": "12h", "interpolate_frequency": "1h"})",
             "'data.dataset.interpolate_frequency'", "together"},
        Case{R"({"dataset": "a", "statistics": {"dataset": "b", "nope": 1}})",
             "'data.dataset.statistics.nope'", "no such key"},
        Case{R"({"cutout": ["a", "b"], "min_distance_km": -1})", "'data.dataset.min_distance_km'",
             "number >= 0"},
        Case{R"({"dataset": ""})", "'data.dataset'", "names no dataset"}}) {
    INFO(c.json);
    REQUIRE_THAT(fault_of(c.json), ContainsSubstring(c.path) && ContainsSubstring(c.words));
  }
}

TEST_CASE("all stores of a tree are found, each once", "[dataset_tree]") {
  REQUIRE(store_names(parse(R"({"cutout": [{"join": ["a", "b"], "statistics": "c"}, "a"],
                                "area": "d"})")) == std::vector<std::string>{"a", "b", "c", "d"});
  REQUIRE(store_names(parse(R"({"dataset": "a", "area": [1, 2, 3, 4]})")) ==
          std::vector<std::string>{"a"});
}

TEST_CASE("a configuration takes a dataset of any form, and writes it as it was read",
          "[dataset_tree]") {
  for (const char* text :
       {R"("a")", R"(["a","b"])", R"({"join":["a",{"dataset":"b","start":2020}],"thinning":2})"}) {
    DataOptions options;
    config::read(options, config::parse_json(concat(R"({"dataset": )", text, "}"), "f"), "data",
                 {});
    const auto fields = config::fields_of(options);
    const config::Json written = config::write_object(fields);
    DataOptions again;
    config::read(again, written, "data", {});
    REQUIRE(again.dataset.values == options.dataset.values);
    REQUIRE(again.dataset.dataset == options.dataset.dataset);
  }
}

TEST_CASE("a dataset inside another keeps its own options", "[dataset_tree]") {
  const DatasetTree inner = parse(R"({"complement": "a", "source": "b", "end": "2020"})");
  const DatasetTree outer = put_inside_another(inner);
  REQUIRE(outer.end.empty());
  REQUIRE(outer.source_key() == "dataset");
  const DatasetTree again = parse_dataset(outer.value("dataset"), "p");
  REQUIRE(again.end == "2020");
  REQUIRE(again.values == inner.values);
  REQUIRE(store_names(outer) == std::vector<std::string>{"a", "b"});
}
