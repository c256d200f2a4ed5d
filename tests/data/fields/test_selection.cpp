// SPDX-License-Identifier: Apache-2.0
// The tables follow Anemoi's grammar of start and end; expected rows were worked out by hand.
#include "data/fields/selection.h"

#include "core/check.h"
#include "core/time.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

using Rows = std::vector<int64_t>;
constexpr int64_t kStep_s = 21600;

// 40 dates, every 6 h, from 2020-01-01T00.
Rows dates_of(int64_t count = 40) {
  Rows dates;
  for (int64_t i = 0; i < count; ++i)
    dates.push_back(parse_date("2020-01-01") + i * kStep_s);
  return dates;
}

Rows rows_of(const DatasetOptions& options, int64_t count = 40) {
  return select_rows(dates_of(count), kStep_s, options);
}

void require_range(const std::string& start, const std::string& end, int64_t first, int64_t last) {
  INFO("start " << start << " end " << end);
  const Rows rows = rows_of({.start = start, .end = end});
  REQUIRE(rows.front() == first);
  REQUIRE(rows.back() == last);
  REQUIRE(static_cast<int64_t>(rows.size()) == last - first + 1);
}

const std::vector<std::string> kVariables{"2t", "msl", "q_1000", "q_500", "tp"};

}  // namespace

TEST_CASE("start and end take the dates of a period, both included", "[selection]") {
  require_range("", "", 0, 39);
  require_range("2020-01-02", "", 4, 39);
  require_range("", "2020-01-02", 0, 7);  // to the end of that day
  require_range("20200102", "20200103", 4, 11);
  require_range("2020", "2020", 0, 39);
  require_range("202001", "2020-01", 0, 39);
  require_range("1999", "2035", 0, 39);
  require_range("2020-01-01T12:00:00", "2020-01-03 06:00:00", 2, 9);
}

TEST_CASE("dates in any form of ISO 8601 choose the same rows", "[selection]") {
  require_range("2020-01-01T12", "2020-01-03T06", 2, 9);
  require_range("2020-01-01T12:00Z", "20200103T0600", 2, 9);
  require_range("2020-01-01T14:00:00+02:00", "2020-W01-5T06:00", 2, 9);
  require_range("2020-001T12:00:00", "2020-003T06", 2, 9);
  require_range("2020-01-10T06", "", 37, 39);
  require_range("12:00", "", 2, 39);  // of the first day
  REQUIRE_THROWS_WITH(rows_of({.start = "ab:00"}), ContainsSubstring("data.dataset.start"));
  REQUIRE_THROWS_WITH(rows_of({.end = "12:00"}), ContainsSubstring("data.dataset.end"));
}

TEST_CASE("dates between two rows round inwards", "[selection]") {
  require_range("2020-01-01T00:00:01", "2020-01-01T23:59:59", 1, 3);
  require_range("2020-01-01T06:00:00", "2020-01-01T06:00:00", 1, 1);
}

TEST_CASE("percentages cut as Anemoi cuts", "[selection]") {
  require_range("", "80%", 0, 31);
  require_range("50%", "", 19, 39);  // 50 % as start and as end share one date
  require_range("", "50%", 0, 19);
  require_range("0%", "100%", 0, 39);
  require_range("", "0%", 0, 0);
  require_range("100%", "", 39, 39);
  require_range("12.4%", "", 4, 39);  // 4.96
  REQUIRE(rows_of({.end = "80%"}, 12).back() == 8);
  REQUIRE(rows_of({.start = "50%"}, 12).front() == 5);
}

TEST_CASE("a period without dates is an error that says what there is", "[selection]") {
  for (const auto& [start, end] : std::vector<std::pair<std::string, std::string>>{
           {"2021", ""},
           {"", "2019"},
           {"2020-01-05", "2020-01-04"},
           {"60%", "40%"},
           {"2020-01-01T01:00:00", "2020-01-01T05:00:00"}}) {
    REQUIRE_THROWS_AS(rows_of({.start = start, .end = end}), ConfigError);
    REQUIRE_THROWS_WITH(rows_of({.start = start, .end = end}),
                        ContainsSubstring("data.dataset.") &&
                            ContainsSubstring("2020-01-01T00:00:00") &&
                            ContainsSubstring("2020-01-10T18:00:00"));
  }
}

TEST_CASE("messages name the key that the date was taken from", "[selection]") {
  REQUIRE_THROWS_WITH(rows_of({.start = "2021", .start_path = "data.training.start"}),
                      ContainsSubstring("data.training.start"));
  REQUIRE_THROWS_WITH(rows_of({.end = "x%", .end_path = "data.validation.end"}),
                      ContainsSubstring("data.validation.end"));
}

TEST_CASE("texts that are no dates are refused with the key", "[selection]") {
  for (const char* text : {"soon", "101%", "-1%", "%", "x%", "nan%", "2020-01-01T", "5 %%"}) {
    REQUIRE_THROWS_WITH(rows_of({.start = text}), ContainsSubstring("data.dataset.start"));
    REQUIRE_THROWS_WITH(rows_of({.end = text}), ContainsSubstring("data.dataset.end"));
  }
}

TEST_CASE("frequency keeps every k-th date from the first kept one on", "[selection]") {
  REQUIRE(rows_of({.start = "2020-01-01T06:00:00", .end = "2020-01-03", .frequency = "24h"}) ==
          Rows{1, 5, 9});
  REQUIRE(rows_of({.end = "2020-01-01", .frequency = "12h"}) == Rows{0, 2});
  REQUIRE(rows_of({.frequency = "6h"}).size() == 40);
  REQUIRE(rows_of({.frequency = "100d"}) == Rows{0});
  for (const char* frequency : {"5h", "1h", "9h", "0h", "-6h", "often"}) {
    REQUIRE_THROWS_WITH(rows_of({.frequency = frequency}),
                        ContainsSubstring("data.dataset.frequency"));
  }
}

TEST_CASE("select gives the order, drop takes away after it", "[selection]") {
  REQUIRE(select_columns(kVariables, {}) == Rows{0, 1, 2, 3, 4});
  REQUIRE(select_columns(kVariables, {.select = {"tp", "2t"}}) == Rows{4, 0});
  REQUIRE(select_columns(kVariables, {.drop = {"msl", "tp"}}) == Rows{0, 2, 3});
  REQUIRE(select_columns(kVariables, {.select = {"tp", "msl", "2t"}, .drop = {"msl"}}) ==
          Rows{4, 0});
}

TEST_CASE("variables that cannot be had are named with near names", "[selection]") {
  const auto message = [](const DatasetOptions& options) -> std::string {
    try {
      select_columns(kVariables, options);
    } catch (const ConfigError& error) {
      return concat(error.what(), " ", error.hint());
    }
    return "";
  };
  REQUIRE_THAT(message({.select = {"q_50"}}), ContainsSubstring("data.dataset.select") &&
                                                  ContainsSubstring("q_50") &&
                                                  ContainsSubstring("'q_500'"));
  REQUIRE_THAT(message({.drop = {"2m"}}),
               ContainsSubstring("data.dataset.drop") && ContainsSubstring("'2t'"));
  REQUIRE_THAT(message({.select = {"tp", "tp"}}), ContainsSubstring("twice"));
  REQUIRE_THAT(message({.select = {"tp"}, .drop = {"msl"}}), ContainsSubstring("'msl'"));
  REQUIRE_THAT(message({.drop = kVariables}), ContainsSubstring("no variable is left"));
}
