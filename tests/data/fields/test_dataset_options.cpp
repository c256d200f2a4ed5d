// SPDX-License-Identifier: Apache-2.0
#include "data/fields/dataset_options.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "data/options.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

DatasetOptions options_of(const char* text) {
  DatasetOptions options;
  config::read(options, config::parse_json(text, "f"), "data.dataset", {});
  return options;
}

}  // namespace

TEST_CASE("dates may be numbers, texts and percentages", "[dataset_options]") {
  REQUIRE(options_of(R"({"start": 2020, "end": "80%"})").start == "2020");
  REQUIRE(options_of(R"({"start": 2020, "end": "80%"})").end == "80%");
  REQUIRE(options_of(R"({"end": "2020-01-31"})").end == "2020-01-31");
  REQUIRE(options_of(R"({"start": null})").start.empty());
  REQUIRE_THROWS_AS(options_of(R"({"start": "soon"})"), ConfigError);
  REQUIRE_THROWS_AS(options_of(R"({"start": ["2020"]})"), ConfigError);
}

TEST_CASE("arguments take the forms that open_dataset takes", "[dataset_options]") {
  REQUIRE(options_of(R"({"frequency": 12})").frequency == "12");
  REQUIRE(options_of(R"({"frequency": null, "select": null, "drop": null, "end": null})")
              .frequency.empty());
  REQUIRE(options_of(R"({"select": "2t"})").select == std::vector<std::string>{"2t"});
  REQUIRE(options_of(R"({"drop": "2t"})").drop == std::vector<std::string>{"2t"});
  REQUIRE(options_of(R"({"drop": []})").drop.empty());
  for (const char* date : {"2020", "2020-01", "202001", "20200110", "2020-01-10T06",
                           "2020-01-10T06:00", "2020-01-10 06:00:00", "2020-01-10T06:00:00Z",
                           "2020-01-10T06:00:00+01:00", "2020-W02", "80%", "06:00"}) {
    INFO(date);
    REQUIRE(options_of(concat(R"({"start": ")", date, R"("})").c_str()).start == date);
  }
  REQUIRE(options_of(R"({"start": 20200110})").start == "20200110");
  REQUIRE(options_of(R"({"start": 202001})").start == "202001");
  REQUIRE_THROWS_AS(options_of(R"({"start": 2020.5})"), ConfigError);
  REQUIRE_THROWS_AS(options_of(R"({"frequency": 1.5})"), ConfigError);
}

TEST_CASE("strict and the former name of its opposite do not go together", "[dataset_options]") {
  REQUIRE(options_of(R"({"strict": true, "allow_missing_chunks": false})").strict);
  REQUIRE_FALSE(options_of(R"({"allow_missing_chunks": true})").strict);
  REQUIRE_THROWS_WITH(options_of(R"({"strict": true, "allow_missing_chunks": true})"),
                      ContainsSubstring("data.dataset.strict"));
}

TEST_CASE("periods take what dates and percentages take", "[dataset_options]") {
  DataOptions options;
  config::read(options,
               config::parse_json(R"({"dataset": "x", "training": {"end": "80%"},
      "validation": {"start": "2020-01-10T06", "end": null}, "timestep": 6})",
                                  "f"),
               "data", {});
  REQUIRE(options.training.end == "80%");
  REQUIRE(options.validation.start == "2020-01-10T06");
  REQUIRE(options.timestep == "6");
  const auto analytic =
      config::parse_json(R"({"kind": "analytic", "training": {"end": "80%"}})", "f");
  REQUIRE_THROWS_WITH(config::read(options, analytic, "data", {}),
                      ContainsSubstring("data.training.end"));
}

TEST_CASE("what was written can be read again", "[dataset_options]") {
  for (const char* text : {"{}", R"({"dataset": "x.zarr", "start": "10%", "end": "2020",
                                     "frequency": "12h", "select": ["a", "b"], "drop": ["b"],
                                     "allow_missing_chunks": true, "cache_mib": 0})"}) {
    DatasetOptions options = options_of(text);
    const config::Json written = config::write_object(config::fields_of(options));
    DatasetOptions again = options_of(written.dump().c_str());
    REQUIRE(config::write_object(config::fields_of(again)) == written);
  }
}

TEST_CASE("keys and values that mean nothing are refused with their path", "[dataset_options]") {
  for (const char* text : {R"({"colour": "blue"})", R"({"frequency": "often"})",
                           R"({"select": 2.5})", R"({"cache_mib": -1})"}) {
    REQUIRE_THROWS_WITH(options_of(text), ContainsSubstring("data.dataset."));
  }
}
