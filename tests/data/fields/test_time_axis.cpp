// SPDX-License-Identifier: Apache-2.0
#include "data/fields/time_axis.h"

#include "core/check.h"
#include "core/rng.h"
#include "data/zarr/dtype.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

using Dates = std::vector<int64_t>;
constexpr int64_t kHour = 3600;

}  // namespace

TEST_CASE("a complete axis stays as it is", "[time_axis]") {
  const Dates dates{0, 6 * kHour, 12 * kHour, 18 * kHour};
  const TimeAxis axis = make_time_axis(dates, 6 * kHour, Dates{12 * kHour, 999});
  REQUIRE(axis.dates_s == dates);
  REQUIRE(axis.frequency_s == 6 * kHour);
  REQUIRE(axis.stored_rows == Dates{0, 1, 2, 3});
  REQUIRE(axis.missing_rows == Dates{2});  // what is not on the axis does not count
}

TEST_CASE("rows that were left out come back as missing ones", "[time_axis]") {
  Pcg64 rng(7);
  for (int trial = 0; trial < 50; ++trial) {
    Dates stored, declared, expected_rows, expected_missing;
    for (int64_t row = 0; row < 40; ++row) {
      const bool is_end = row == 0 || row == 39;
      const bool left_out = !is_end && rng.next_bounded(4) == 0;
      expected_rows.push_back(left_out ? -1 : static_cast<int64_t>(stored.size()));
      if (!left_out) stored.push_back(1000 + row * 60);
      const bool is_declared = rng.next_bounded(9) == 0;
      if (is_declared) declared.push_back(1000 + row * 60);
      if (left_out || is_declared) expected_missing.push_back(row);
    }
    const TimeAxis axis = make_time_axis(stored, 60, declared);
    REQUIRE(axis.dates_s.size() == 40);
    for (size_t row = 0; row < 40; ++row)
      REQUIRE(axis.dates_s[row] == 1000 + static_cast<int64_t>(row) * 60);
    REQUIRE(axis.stored_rows == expected_rows);
    REQUIRE(axis.missing_rows == expected_missing);
  }
}

TEST_CASE("without a declared frequency the first two dates give it", "[time_axis]") {
  REQUIRE(make_time_axis(Dates{5, 15, 25}, std::nullopt, {}).frequency_s == 10);
  REQUIRE(make_time_axis(Dates{5}, 10, {}).frequency_s == 10);
  REQUIRE_THROWS_WITH(make_time_axis(Dates{5}, std::nullopt, {}), ContainsSubstring("frequency"));
}

TEST_CASE("dates that are no axis are refused", "[time_axis]") {
  const auto refuses = [](const Dates& dates, int64_t frequency_s, const char* named) {
    REQUIRE_THROWS_AS(make_time_axis(dates, frequency_s, {}), DataError);
    REQUIRE_THROWS_WITH(make_time_axis(dates, frequency_s, {}), ContainsSubstring(named));
  };
  refuses({}, 10, "dates");
  refuses({10, 20, 20}, 10, "dates");
  refuses({10, 30, 20}, 10, "dates");
  refuses({10, zarr::kNotATime, 30}, 10, "dates");
  refuses({10, 20, 35}, 10, "dates");          // between two steps
  refuses({10, 30, 50, 70}, 10, "frequency");  // equal steps, but other ones
  refuses({10, 15, 20}, 10, "frequency");
  refuses({10, 20}, 0, "frequency");
  refuses({10, 20}, -10, "frequency");
}

TEST_CASE("a gap that no missing dates explain does not cost memory", "[time_axis]") {
  REQUIRE_THROWS_WITH(make_time_axis(Dates{0, 1, 1'000'000'000'000}, 1, {}),
                      ContainsSubstring("dates"));
  REQUIRE(make_time_axis(Dates{0, 1, 900}, 1, {}).dates_s.size() == 901);
}

TEST_CASE("a date is found in its row, unless that is missing", "[time_axis]") {
  const std::vector<int64_t> dates{100, 200, 300}, missing{1};
  REQUIRE(find_row(dates, missing, 100) == 0);
  REQUIRE(find_row(dates, missing, 300) == 2);
  REQUIRE(find_row(dates, missing, 200) == -1);
  REQUIRE(find_row(dates, {}, 200) == 1);
  for (const int64_t date : {99, 150, 301})
    REQUIRE(find_row(dates, {}, date) == -1);
}
