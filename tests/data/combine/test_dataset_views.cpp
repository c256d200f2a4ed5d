// SPDX-License-Identifier: Apache-2.0
#include "data/combine/dataset_views.h"

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/open_test_dataset.h"

using namespace aifs;
using namespace aifs::data;
using test::position_value;

namespace {

const test::AnemoiSpec kSpec{.num_dates = 9, .missing = {0, 3, 4, 6}};

DatasetPtr source() {
  static const test::Stores stores{{"a", test::write_anemoi(kSpec)}};
  return test::open(stores, "\"a\"");
}

// The stored row whose values a row has.
int64_t row_behind(const Dataset& dataset, int64_t row) {
  const float value = test::value_at(dataset, row, 0, 0, 0);
  return static_cast<int64_t>(value) / (5 * kSpec.num_cells);
}

}  // namespace

TEST_CASE("missing rows are filled with the closest one, the later of two", "[dataset_views]") {
  const DatasetPtr filled = with_filled_rows(source(), MissingFill::kClosest);
  REQUIRE(filled->info().missing_rows.empty());
  const std::vector<int64_t> expected{1, 1, 2, 2, 5, 5, 7, 7, 8};
  for (int64_t row = 0; row < 9; ++row)
    REQUIRE(row_behind(*filled, row) == expected[static_cast<size_t>(row)]);
}

TEST_CASE("missing rows between others are interpolated, those at the ends stay missing",
          "[dataset_views]") {
  const DatasetPtr filled = with_filled_rows(source(), MissingFill::kInterpolate);
  REQUIRE(filled->info().missing_rows == std::vector<int64_t>{0});
  const auto at = [&](int64_t row) { return position_value(kSpec, row, 2, 0, 5); };
  REQUIRE(test::value_at(*filled, 6, 2, 0, 5) == 0.5f * at(5) + 0.5f * at(7));
  const auto third = static_cast<float>(1.0 / 3.0), rest = static_cast<float>(1.0 - 1.0 / 3.0);
  REQUIRE(test::value_at(*filled, 3, 2, 0, 5) == at(2) * rest + at(5) * third);
  REQUIRE_THROWS_AS(test::row_of(*filled, 0), DataError);
}

TEST_CASE("rows in between are linear in time; missing ones take their neighbours with them",
          "[dataset_views]") {
  const DatasetPtr finer = with_rows_between(source(), 3);
  const DatasetInfo& info = finer->info();
  REQUIRE(info.num_rows() == 25);
  REQUIRE(info.frequency_s == 7200);
  REQUIRE(info.dates_s[24] == source()->info().dates_s[8]);
  REQUIRE(info.dates_s[4] - info.dates_s[3] == 7200);
  // Stored rows 1 and 2 are at 3 and 6; 0, 3, 4 and 6 are missing.
  REQUIRE(info.missing_rows ==
          std::vector<int64_t>{0, 1, 2, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 18, 19, 20});
  const auto at = [&](int64_t row) { return double{position_value(kSpec, row, 1, 0, 3)}; };
  REQUIRE(test::value_at(*finer, 3, 1, 0, 3) == static_cast<float>(at(1)));
  REQUIRE(test::value_at(*finer, 4, 1, 0, 3) ==
          static_cast<float>(at(1) * (1 - 1.0 / 3) + at(2) / 3));
}

TEST_CASE("means are over the rows around, and missing where one of them is", "[dataset_views]") {
  const DatasetPtr means = with_means(source(), 1, 0);
  REQUIRE(means->info().num_rows() == 8);
  REQUIRE(means->info().dates_s.front() == source()->info().dates_s[1]);
  REQUIRE(means->info().missing_rows == std::vector<int64_t>{0, 2, 3, 4, 5, 6});
  const auto at = [&](int64_t row) { return position_value(kSpec, row, 4, 0, 11); };
  REQUIRE(test::value_at(*means, 1, 4, 0, 11) == (at(1) + at(2)) / 2.0f);
  REQUIRE(test::value_at(*means, 7, 4, 0, 11) == (at(7) + at(8)) / 2.0f);
}

TEST_CASE("statistics follow what is done to values", "[dataset_views]") {
  std::vector<UnitMap> maps(5);
  maps[1] = {2.0, -3.0};
  const DatasetInfo info = with_maps(source(), maps)->info();
  const auto statistic = [](int64_t k) { return test::statistic_value(1, k); };
  REQUIRE(info.statistics.mean[1] == 2.0 * statistic(0) - 3.0);
  REQUIRE(info.statistics.stdev[1] == 2.0 * statistic(1));
  REQUIRE(info.statistics.minimum[1] == 2.0 * statistic(2) - 3.0);
  REQUIRE(info.tendencies.at(21600).mean[1] == 2.0 * test::tendency_value(1, 0, 0));
  REQUIRE(info.statistics.mean[0] == test::statistic_value(0, 0));
}

TEST_CASE("names, missing rows, cells and statistics change what is known", "[dataset_views]") {
  REQUIRE(with_missing(source(), {2, 3})->info().missing_rows ==
          std::vector<int64_t>{0, 2, 3, 4, 6});
  REQUIRE(with_names(source(), {"a", "b", "c", "d", "e"})->info().variables[4] == "e");
  const DatasetInfo cells = with_cells(source(), {1, 4, 5, 7}, {2, 2})->info();
  REQUIRE(cells.field_shape == std::vector<int64_t>{2, 2});
  REQUIRE(with_cells(source(), {1, 4})->info().field_shape == std::vector<int64_t>{2});
  const Statistics other{{1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}, {3, 3, 3, 3, 3}, {4, 4, 4, 4, 4}};
  const DatasetInfo info = with_statistics(source(), other, std::nullopt)->info();
  REQUIRE(info.statistics.maximum[3] == 4);
  REQUIRE(info.tendencies.at(21600).mean[1] == test::tendency_value(1, 0, 0));
}
