// SPDX-License-Identifier: Apache-2.0
#include "data/combine/open_dataset.h"

#include "core/check.h"
#include "data/sources/anemoi_dataset.h"
#include "tests/support/catch.h"
#include "tests/support/open_test_dataset.h"

using namespace aifs;
using namespace aifs::data;
using test::AnemoiSpec;
using test::position_value;

namespace {

const AnemoiSpec kFirst{.num_dates = 4, .num_cells = 30};
const AnemoiSpec kLater{.num_dates = 4, .num_cells = 30, .first_date_s = 1577836800 + 4 * 21600};

const test::Stores& stores() {
  static const test::Stores kStores{{"a", test::write_anemoi(kFirst)},
                                    {"later", test::write_anemoi(kLater)}};
  return kStores;
}

}  // namespace

TEST_CASE("one store with a selection is read as it always was", "[open_dataset]") {
  const DatasetPtr dataset =
      test::open(stores(), R"({"dataset": "a", "select": ["tp", "2t"], "frequency": "12h"})");
  REQUIRE(dynamic_cast<const AnemoiDataset*>(dataset.get()));
  REQUIRE(dataset->info().num_rows() == 2);
}

TEST_CASE("a list is joined if its dates are the same, and concatenated if not", "[open_dataset]") {
  const DatasetPtr joined =
      test::open(stores(), R"([{"dataset": "a", "select": "2t"}, {"dataset": "a", "drop": "2t"}])");
  REQUIRE(joined->info().variables ==
          std::vector<std::string>{"2t", "msl", "q_1000", "q_500", "tp"});
  const DatasetPtr whole = test::open(stores(), R"({"datasets": ["a", "later"]})");
  REQUIRE(whole->info().num_rows() == 8);
  REQUIRE(test::value_at(*whole, 6, 1, 0, 3) == position_value(kLater, 2, 1, 0, 3));
  REQUIRE(test::open(stores(), R"(["a"])")->info().num_rows() == 4);
}

TEST_CASE("options of an object apply to its combination, those within to its members",
          "[open_dataset]") {
  const DatasetPtr dataset = test::open(stores(), R"({
    "dataset": {"concat": [{"dataset": "a", "start": "2020-01-01T12:00:00"}, "later"],
                "adjust": "variables"},
    "select": ["q_500", "2t"], "start": "2020-01-01T18:00:00", "frequency": "12h",
    "rename": {"2t": "t"}})");
  const DatasetInfo& info = dataset->info();
  REQUIRE(info.variables == std::vector<std::string>{"q_500", "t"});
  REQUIRE(info.num_rows() == 3);
  REQUIRE(info.dates_s[0] == 1577836800 + 3 * 21600);
  REQUIRE(test::value_at(*dataset, 1, 0, 0, 9) == position_value(kLater, 1, 3, 0, 9));
}

TEST_CASE("places of mistakes are those of the configuration", "[open_dataset]") {
  const auto fails = [&](const std::string& json, const std::string& path,
                         const std::string& words) {
    INFO(json);
    REQUIRE_THROWS_WITH(
        test::open(stores(), json),
        ContainsSubstring("'data.dataset." + path + "'") && ContainsSubstring(words));
  };
  fails(R"({"join": [{"dataset": "a", "select": "nope"}, "a"]})", "join.0.select", "'nope'");
  fails(R"({"concat": ["a", {"dataset": "later", "start": "2031"}]})", "concat.1.start", "no date");
  fails(R"({"dataset": {"dataset": "a", "frequency": "12h"}, "frequency": "18h"})", "frequency",
        "12h");
  fails(R"({"join": ["a", "later"], "adjust": ["select", "colour"]})", "adjust", "colour");
  fails(R"({"join": ["a", "a"], "adjust": "all", "start": "2020"})", "start", "adjust");
  fails(R"({"zip": ["a", "a"]})", "zip", "side by side");
  fails(R"({"complement": "a", "source": "later", "interpolation": "cubic"})", "interpolation",
        "nearest");
  fails(R"({"complement": "a", "source": "later", "k": 2})", "k", "nearest");
}

TEST_CASE("datasets side by side are opened one by one", "[open_dataset]") {
  const auto side_by_side = [&](const std::string& json) {
    return open_side_by_side(parse_dataset(config::parse_json(json, "f"), "data.dataset"),
                             test::opener_of(stores()));
  };
  REQUIRE(side_by_side(R"({"x": "a", "y": {"dataset": "a", "thinning": null}})").size() == 2);
  REQUIRE(side_by_side(R"({"zip": ["a", "a", "a"]})").size() == 3);
  REQUIRE(side_by_side("\"a\"").size() == 1);
  REQUIRE_THROWS_WITH(side_by_side(R"({"zip": ["a", "later"]})"), ContainsSubstring("dates"));
  REQUIRE_THROWS_WITH(side_by_side(R"({"xy": ["a", "a", "a"]})"), ContainsSubstring("not two"));
  REQUIRE_THROWS_WITH(side_by_side(R"({"zip": ["a", "a"], "start": 2020})"),
                      ContainsSubstring("options"));
}

TEST_CASE("strict reaches all stores", "[open_dataset]") {
  const auto store = test::write_anemoi(kFirst);
  store->erase("data/1.0.0.0");
  const test::Stores damaged{{"a", store}, {"b", test::write_anemoi(kFirst)}};
  const auto warnings = [&](const std::string& more) {
    return test::open(damaged,
                      R"({"ensemble": ["b", {"dataset": "a", "thinning": null}])" + more + "}")
        ->warnings();
  };
  REQUIRE(warnings("").size() == 1);
  REQUIRE_THROWS_AS(warnings(R"(, "strict": true)"), DataError);
}
