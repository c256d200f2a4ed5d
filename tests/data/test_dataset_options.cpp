// SPDX-License-Identifier: Apache-2.0
#include "data/dataset_options.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
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
                           R"({"select": "2t"})", R"({"cache_mib": -1})"}) {
    REQUIRE_THROWS_WITH(options_of(text), ContainsSubstring("data.dataset."));
  }
}
